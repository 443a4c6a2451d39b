// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.sinks.KilledWriter
import org.apache.spark.sql.changelog.testing.ChangelogSession

/**
 * Queries of every operator, with every state store, emit what batch Spark gives, however often the
 * driver is killed.
 */
class DriverKillSuite extends AnyFunSuite with ChangelogSession {
  private val QueriesAtOnce = 4
  private val LatestKillMillis = 1500
  private val MostBatches = 10
  private val RoundsOfOne = if (KilledWriter.isLong) 20 else 2
  private val random = new Random(KilledWriter.seed)

  test("queries of every operator and each state store") {
    val rounds = KilledWriter.rounds(few = 2)
    val shuffled = Iterator.continually(random.shuffle(OperatorQuery.all)).flatten
    val providers = Iterator.continually(random.shuffle(RunningQueries.Providers)).flatten
    var figures = RunFigures()
    for (first <- 1 to rounds by RoundsOfOne) {
      val queries = shuffled
        .take(QueriesAtOnce)
        .toSeq
        .distinct
        .map(_ -> (providers.next()._2 + ("spark.sql.changelog.unmatchedRetraction" -> "fail")))
      val last = math.min(first + RoundsOfOne - 1, rounds)
      withClue(s"rounds $first to $last, CHANGELOG_KILL_SEED=${KilledWriter.seed}: ") {
        figures += kill(queries, last - first + 1)
      }
      note(figures.toString)
    }
    figures.check()
  }

  private def kill(
      queries: Seq[(OperatorQuery, Map[String, String])],
      rounds: Int): RunFigures = {
    val running = new RunningQueries(spark, queries, Map("spark.master" -> "local[2]"), random)
    for (_ <- 1 to rounds) {
      val process = running.start()
      try {
        // however fast the machine is, batches of most rounds are committed
        val committed = running.committed + random.nextInt(MostBatches)
        val deadline = System.nanoTime() + 60000000000L
        while (running.committed < committed && System.nanoTime() < deadline) {
          running.arrive()
          Thread.sleep(random.nextInt(300).toLong)
        }
        Thread.sleep(random.nextInt(LatestKillMillis).toLong)
        running.checkRuns(process)
      } finally running.kill(process)
      running.judge()
    }
    val process = running.start()
    try running.finish(process, seconds = 300)
    finally running.end(process)
    val figures = running.figures
    running.delete()
    figures
  }
}
