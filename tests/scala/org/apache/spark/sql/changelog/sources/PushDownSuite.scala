// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import java.io.File

import scala.collection.mutable

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.Row
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart

import org.apache.spark.sql.changelog.testing.{QuickFileSystem, RowMultiset}
import org.apache.spark.sql.changelog.views.ViewSession

/** The scan of each kind of source gets the filters of a query, and reads only the columns of the query. */
class PushDownSuite extends AnyFunSuite with ViewSession with BeforeAndAfterEach {
  private val columns = "id INT, day INT, a INT, b STRING, c STRING"
  private val query = "SELECT day, sum(a) AS s FROM t WHERE a > 1 GROUP BY day"

  override def afterEach(): Unit = {
    Seq("v", "u").foreach(name => run(s"DROP MATERIALIZED VIEW IF EXISTS $name"))
    Seq("t", "base").foreach(name => run(s"DROP TABLE IF EXISTS $name"))
    spark.catalog.dropTempView("t")
    ()
  }

  /** Returns the descriptions of all scans of columns in files of a folder, each with its plan. */
  private def scansOf(folder: String)(body: => Unit): Seq[(String, String)] = {
    val plans = mutable.ArrayBuffer.empty[String]
    val listener = new SparkListener {
      override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
        case start: SparkListenerSQLExecutionStart =>
          plans.synchronized(plans += start.physicalPlanDescription)
        case _ =>
      }
    }
    spark.sparkContext.addSparkListener(listener)
    try {
      body
      spark.sparkContext.listenerBus.waitUntilEmpty()
    } finally spark.sparkContext.removeSparkListener(listener)
    for {
      plan <- plans.toSeq
      node <- plan.split("\n\n")
      if Scan.matches(node) && node.contains(folder)
    } yield node -> plan
  }

  private val Scan = """(?s)\s*\(\d+\) Scan .*\nReadSchema: struct<\w.*""".r

  private def check(
      scans: Seq[(String, String)],
      filters: Seq[String] = Seq("PushedFilters")): Unit = {
    assert(scans.nonEmpty)
    scans.foreach { case (scan, plan) =>
      val read = scan.linesIterator.find(_.startsWith("ReadSchema")).getOrElse(scan)
      assert(!Seq("id:", "b:", "c:").exists(column => read.matches(s".*[<,]$column.*")), plan)
      filters.foreach { filter =>
        val line = scan.linesIterator.find(_.startsWith(filter)).getOrElse("")
        assert(line.contains(if (filter == "PushedFilters") "GreaterThan(a,1)" else "day"), plan)
      }
    }
  }

  private val feed = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
  private val files = "USING delta TBLPROPERTIES (delta.enableDeletionVectors = false)"
  private val vectors = "USING delta TBLPROPERTIES (delta.enableDeletionVectors = true)"

  Seq("change feed" -> feed, "files" -> files, "deletion vectors" -> vectors).foreach {
    case (name, format) =>
      test(s"a followed Delta table: $name") {
        run(s"CREATE TABLE t ($columns) $format")
        run("INSERT INTO t VALUES (1, 1, 1, 'b', 'c'), (2, 2, 2, 'b', 'c'), (3, 2, 5, 'b', 'c')")
        run(s"CREATE MATERIALIZED VIEW v AS $query")
        Seq(
          "UPDATE t SET a = a + 1 WHERE id = 3",
          "UPDATE t SET b = 'd' WHERE id = 3", // changes no column of the query
          "DELETE FROM t WHERE id = 2",
          "INSERT INTO t SELECT 4, day, a, b, c FROM t WHERE id = 3").foreach { change =>
          run(change)
          check(scansOf("/t]")(run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")))
          assert(run("SELECT * FROM v").toSet == run(query).toSet, change)
        }
        assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
      }
  }

  test("changes of which the query reads no column are counted") {
    run(s"CREATE TABLE t ($columns) $files")
    run("INSERT INTO t VALUES (1, 1, 1, 'b', 'c'), (2, 2, 2, 'b', 'c')")
    run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    Seq(
      "UPDATE t SET a = 0" -> 2L,
      "INSERT INTO t SELECT * FROM t" -> 4L,
      "DELETE FROM t WHERE id = 2" -> 2L,
      "DELETE FROM t" -> 0L).foreach { case (change, expected) =>
      run(change)
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      assert(run("SELECT * FROM v") == Seq(Row(expected)), change)
    }
  }

  test("a followed table of partitioned files") {
    run(s"CREATE TABLE t ($columns) USING parquet PARTITIONED BY (day)")
    def insert(day: Int): Unit = {
      run(s"INSERT INTO t PARTITION (day = $day) SELECT 1, 7, 'b', 'c'")
      ()
    }
    insert(1)
    run(s"CREATE MATERIALIZED VIEW v AS ${query.replace("a > 1", "a > 1 AND day < 3")}")
    (2 to 3).foreach { day =>
      insert(day)
      val scans = scansOf("/t]")(run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT"))
      check(scans, Seq("PushedFilters", "PartitionFilters"))
    }
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(Seq(Row(1, 7L), Row(2, 7L))))
  }

  test("a view over a view") {
    run(s"CREATE TABLE base ($columns) $feed")
    run("INSERT INTO base VALUES (1, 1, 1, 'b', 'c'), (2, 2, 2, 'b', 'c')")
    run(
      "CREATE MATERIALIZED VIEW u USING delta AS SELECT id, day, max(a) AS a, max(b) AS b, max(c) AS c FROM base GROUP BY id, day")
    val scans =
      scansOf("/u]")(run(s"CREATE MATERIALIZED VIEW v AS ${query.replace("FROM t", "FROM u")}"))
    check(scans)
    run("UPDATE base SET a = a + 1 WHERE id = 2")
    run("REFRESH MATERIALIZED VIEW u")
    check(scansOf("/u]")(run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")))
    assert(run("SELECT * FROM v") == Seq(Row(2, 3L)))
  }

  test("a stream of files with a change type") {
    val folder = new File(QuickFileSystem.temporaryDirectory(), "t")
    spark
      .sql("SELECT 1 AS id, 1 AS day, 5 AS a, 'b' AS b, 'c' AS c, 'insert' AS op")
      .write
      .parquet(folder.getPath)
    spark.readStream
      .schema(s"$columns, op STRING")
      .parquet(folder.getPath)
      .createOrReplaceTempView("t")
    val changes = query.replace("FROM t", "FROM from_changelog(TABLE(t), 'op')")
    val scans = scansOf(folder.getPath) {
      val running = spark
        .sql(s"SELECT * FROM to_changelog(TABLE($changes))")
        .writeStream
        .format("noop")
        .outputMode("append")
        .option("checkpointLocation", QuickFileSystem.temporaryDirectory().getPath)
        .start()
      try running.processAllAvailable()
      finally running.stop()
    }
    check(scans)
  }
}
