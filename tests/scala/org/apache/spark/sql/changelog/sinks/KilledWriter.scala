// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import java.nio.file.Files
import java.util.concurrent.TimeUnit

import scala.util.Random

import org.scalatest.Assertions._

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/**
 * Writes random changes through a sink by a process that is killed again and again, and compares
 * what is kept with batch Spark.
 *
 * @param queries
 *   the queries that are kept, each by the sink's format and options
 * @param conf
 *   settings of the process that writes
 */
class KilledWriter(
    spark: SparkSession,
    queries: Seq[KilledWriter.Query],
    conf: Map[String, String] = Map.empty) {
  import KilledWriter._

  private val random = new Random(seed)
  private val home = QuickFileSystem.temporaryDirectory().toPath
  private val feed = Files.createDirectory(home.resolve("feed"))
  private val files = new ChangeFiles(spark, feed, random)
  private val writers = new ChildProcess(SinkWriter, home)

  /**
   * Runs the process `rounds` times until it is killed, then once to its end.
   *
   * @param target
   *   reads what is kept
   * @param atomic
   *   whether what is kept must be the result of some batch also after a kill
   */
  def run(rounds: Int, atomic: Boolean)(target: => Seq[Row]): Unit = {
    for (round <- 1 to rounds) withClue(s"round $round of $rounds, CHANGELOG_KILL_SEED=$seed: ") {
      (0 to random.nextInt(MostFiles)).foreach(_ => files.add())
      val writer = start()
      Thread.sleep(random.nextInt(LatestKillMillis).toLong)
      if (!writer.isAlive) assert(writer.exitValue() == 0, writers.said)
      writer.destroyForcibly().waitFor()
      if (atomic) {
        val kept = RowMultiset.of(target)
        assert((0 to files.size).exists(expected(_) == kept), s"of no batch:\n$kept")
      }
    }
    files.add()
    val last = start()
    assert(
      last.inputReader().readLine() == "finished",
      s"CHANGELOG_KILL_SEED=$seed\n${writers.said}")
    assert(last.waitFor(60, TimeUnit.SECONDS))
    val kept = RowMultiset.of(target)
    assert(kept == expected(files.size), s"CHANGELOG_KILL_SEED=$seed")
  }

  /** A process in which the queries run. */
  private def start(): Process = {
    val jobs = queries.zipWithIndex.flatMap { case (query, index) =>
      val checkpoint = home.resolve(s"checkpoint-$index").toString
      val options = ChildProcess.line(query.options)
      Seq(query.sql, feed.toString, checkpoint, query.format, options)
    }
    val settings = ChildProcess.line(ChildProcess.session(home) ++ conf)
    val writer = writers.start(settings +: jobs: _*)
    assert(writer.inputReader().readLine() == "started", writers.said)
    writer
  }

  /** The rows of all queries after a number of files. */
  private def expected(number: Int): RowMultiset =
    RowMultiset.of(queries.flatMap(query => files.expected(query.sql, number)))
}

object KilledWriter {

  case class Query(sql: String, format: String, options: Map[String, String])

  /** Few, as what a killed process leaves undone adds up. */
  private val MostFiles = 4
  private val LatestKillMillis = 8000

  /** Decides what changes, and when processes are killed. */
  val seed: Long = sys.env.get("CHANGELOG_KILL_SEED").fold(System.nanoTime())(_.toLong)

  /** Whether `dev/kill` runs, and not all tests. */
  def isLong: Boolean = sys.env.contains("CHANGELOG_KILL_ROUNDS")

  /** How often writers are killed: as the environment says, else a few times. */
  def rounds(few: Int): Int = sys.env.get("CHANGELOG_KILL_ROUNDS").fold(few)(_.toInt)
}
