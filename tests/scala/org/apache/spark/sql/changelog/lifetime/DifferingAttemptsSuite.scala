// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import java.io.File
import java.nio.file.Files

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.streaming.StreamingQuery

import org.apache.spark.sql.changelog.testing.{
  ChangelogSession, QuickFileSystem, Share, TextChangelog
}

/**
 * A batch that is run again gives what it gave before, although its files are read in another order
 * by other tasks: what a sink has taken of the first run is what later batches take back.
 */
class DifferingAttemptsSuite extends AnyFunSuite with ChangelogSession {

  /** Each file read by a task of its own, and all of them by one. */
  private val Apart = Map("spark.sql.files.maxPartitionBytes" -> "100")
  private val Together = Map(
    "spark.sql.files.maxPartitionBytes" -> "128MB",
    "spark.sql.files.openCostInBytes" -> "0",
    "spark.sql.files.minPartitionNum" -> "1")

  /** Where one is added to the largest it is lost, but for what is kept of that. */
  private val OfVeryDifferentSize = "CASE v % 3 WHEN 0 THEN 1e16D WHEN 1 THEN 1D ELSE -1e16D END"

  private val onlyCome = Seq(
    "totals" -> "sum(x) AS a, avg(x) AS b, sum(CAST(x AS FLOAT)) AS c",
    "totals of distinct values" -> "sum(DISTINCT x) AS a, avg(DISTINCT x) AS b",
    "moments" -> "stddev(x) AS a, corr(x, v) AS b, skewness(x) AS c, var_pop(v / 7) AS d",
    "any values" -> "any_value(v) AS a, any_value(x, true) AS b, any_value(id) AS c",
    "lists" -> "to_json(collect_list(v)) AS a, listagg(id, '-') AS b, to_json(collect_set(id)) AS c",
    "the row of the largest" -> "max_by(id, v % 3) AS a, min_by(x, v % 2) AS b",
    "the most frequent" -> "mode(v % 3) AS a, mode(x) AS b",
    "sketches" -> "approx_percentile(x, 0.3, 2) AS a, approx_count_distinct(id) AS b")

  for ((name, functions) <- onlyCome)
    test(s"$name of rows that only come") {
      repeat("from_changelog(TABLE(SELECT * EXCEPT (op) FROM raw))")(
        s"SELECT g, $functions FROM t GROUP BY g")
    }

  test("rows that only come, the first ones of which stay") {
    repeat("from_changelog(TABLE(SELECT * EXCEPT (op) FROM raw))")(
      "SELECT count(*) AS n, sum(v) AS s FROM (SELECT * FROM t LIMIT 50)",
      "SELECT g, sum(v) AS s FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY g) AS r FROM t) " +
        "WHERE r <= 9 GROUP BY g")
  }

  test("totals of values of very different size") {
    val sum = s"SELECT g, sum($OfVeryDifferentSize) AS s FROM t GROUP BY g"
    repeat("from_changelog(TABLE(SELECT * EXCEPT (op) FROM raw))")(sum)
    repeat("from_changelog(TABLE(raw), 'op')")(sum)
  }

  private val ofSessions = Seq(
    "totals" -> s"sum($OfVeryDifferentSize) AS a, stddev(x) AS d",
    "lists" -> "to_json(collect_list(v)) AS a",
    "the row of the largest" -> "max_by(id, v % 3) AS a, any_value(v) AS b",
    "sketches" -> "approx_percentile(x, 0.3, 2) AS a")

  for ((name, functions) <- Share.of(ofSessions, oneIn = 2))
    test(s"$name of sessions, many rows of which have one time") {
      repeat("from_changelog(TABLE(SELECT * EXCEPT (op) FROM raw))")(
        s"SELECT g, session_window.start AS b, $functions FROM " +
          "(SELECT *, timestamp_seconds(id DIV 100 * 100) AS at FROM t) " +
          "GROUP BY g, session_window(at, '30 seconds')")
    }

  test("totals of rows that go") {
    repeat("from_changelog(TABLE(raw), 'op')")(
      "SELECT g, sum(x) AS a, avg(x) AS b, sum(CAST(x AS FLOAT)) AS c FROM t GROUP BY g",
      "SELECT g, stddev(x) AS a, corr(x, v) AS b, sum(DISTINCT x) AS c FROM t GROUP BY g",
      "SELECT s, count(*) AS n FROM (SELECT g, sum(x) AS s FROM t GROUP BY g) GROUP BY s")
  }

  /** Runs each query's batches, some of them twice, and checks that what comes can be taken back. */
  private def repeat(table: String)(queries: String*): Unit = queries.foreach { sql =>
    withClue(sql) {
      val random = new Random(sql.hashCode)
      val input = QuickFileSystem.temporaryDirectory()
      val checkpoint = QuickFileSystem.temporaryDirectory()
      val taken = mutable.SortedMap.empty[Long, Seq[String]]
      val again = mutable.SortedMap.empty[Long, Seq[String]]
      for (batch <- 0 to 2) {
        (0 to 5).foreach(file => arrive(new File(input, s"$batch-$file.csv"), random))
        run(table, sql, Apart, input, checkpoint)(taken.put)
        val commits = new File(checkpoint, "commits")
        assert(new File(commits, batch.toString).delete())
        run(table, sql, Together, input, checkpoint)(again.put)
        assert(again(batch.toLong).sorted == taken(batch.toLong).sorted)
      }
      val held = mutable.Map.empty[String, Int].withDefaultValue(0)
      taken.values.flatten.foreach { change =>
        val (row, kind) = change.splitAt(change.lastIndexOf(' '))
        if (kind == " delete" || kind == " update_preimage") {
          assert(held(row) > 0, s"$row is not there")
          held(row) -= 1
        } else held(row) += 1
      }
    }
  }

  private def run(
      table: String,
      sql: String,
      packing: Map[String, String],
      input: File,
      checkpoint: File)(take: (Long, Seq[String]) => Any): Unit = {
    val session = spark.newSession()
    packing.foreach { case (key, value) => session.conf.set(key, value) }
    session.readStream
      .schema("op STRING, id INT, g STRING, v INT, x DOUBLE")
      .csv(input.getPath)
      .createOrReplaceTempView("raw")
    val query: StreamingQuery = session
      .sql(s"SELECT * FROM to_changelog(TABLE(WITH t AS (SELECT * FROM $table) $sql))")
      .writeStream
      .option("checkpointLocation", checkpoint.getPath)
      .foreachBatch { (batch: DataFrame, id: Long) =>
        take(id, batch.collect().map(TextChangelog.format).toSeq)
        ()
      }
      .start()
    try query.processAllAvailable()
    finally query.stop()
  }

  private def arrive(file: File, random: Random): Unit = {
    val rows = Seq.fill(20) {
      s"+I,${random.nextInt(1000)},g${random.nextInt(3)},${random.nextInt(10)},${random.nextInt(1000) / 10.0}"
    }
    Files.writeString(file.toPath, rows.mkString("\n"))
    ()
  }
}
