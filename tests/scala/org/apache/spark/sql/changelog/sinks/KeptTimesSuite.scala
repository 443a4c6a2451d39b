// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.testing._

/**
 * Times pass each source and each sink to the microsecond, whatever the time zones of the JVM and the session.
 * Those of databases are in the suites of their sinks.
 */
class KeptTimesSuite extends AnyFunSuite with ChangelogSession {
  private val names =
    Seq("memory", "files", "delta", "kafka", "kafka events", "parquet view", "delta view")
  private val sources = Seq(InMemory, FeedFiles.Json, FeedFiles.Parquet, FeedDeltaTables)

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.Quick +
      ("spark.sql.warehouse.dir" -> QuickFileSystem.temporaryDirectory().getPath))

  private lazy val oracle = new Oracle(spark)
  private lazy val sinks = new KeptSinks(spark)

  private val clocks =
    Feed("clocks", "id INT, at TIMESTAMP, local TIMESTAMP_NTZ, day DATE", key = Seq("id"))
  private val program = {
    val rows = TimeZones.wallClocks.zipWithIndex.map { case (clock, id) =>
      val local = clock.replace(' ', 'T')
      s"$id ${local}Z $local ${clock.take(10)}"
    }
    val (gone, others) = rows.partition(row => row.hashCode % 3 == 0)
    Program(
      Seq(clocks),
      "SELECT at, local, day, count(*) AS n FROM clocks GROUP BY at, local, day",
      Seq(
        Step(clocks, (gone ++ others.tail).map(row => s"+I $row"): _*),
        Step(clocks, (gone.map(row => s"-D $row") :+ s"+I ${others.head}"): _*)))
  }

  for (name <- names; zones <- TimeZones.drawn(s"times kept by $name"))
    test(s"$name keeps times: JVM in ${zones.jvm}, session in ${zones.session}") {
      val source = sources(Share.choose(s"times kept by $name", sources.size))
      val random = new Random(Share.choose(name, 1000).toLong)
      zones.in(spark) {
        oracle.inSessions(_.conf.set(SQLConf.SESSION_LOCAL_TIMEZONE.key, zones.session))
        val kept = new KeptProgram(oracle.sessions, program, Seq(source))
        val target = sinks(name, kept, random)
        try
          withClue(s"read from $source: ") {
            program.steps.zipWithIndex.foreach { case (step, number) =>
              kept.arrive(step, target.running)
              target.catchUp()
              KeptTarget.compare(target, kept.expected, s"after batch $number")
            }
          }
        finally {
          target.stop()
          kept.close()
        }
      }
    }
}
