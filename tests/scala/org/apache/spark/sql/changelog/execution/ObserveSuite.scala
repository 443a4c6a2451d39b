// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.functions.expr

import org.apache.spark.sql.changelog.testing._

/** Metrics of `observe` below `to_changelog`. */
class ObserveSuite extends AnyFunSuite with ChangelogSession {
  private val metrics = Seq(
    "count(*) AS rows",
    "count(v) AS values",
    "sum(v) AS total",
    "count_if(v > 3) AS large",
    "sum(CASE g WHEN 'a' THEN v END) + 1 AS a").map(expr)

  private def observed(stream: RawStream, table: String, mode: String)(steps: Seq[String]*) = {
    spark
      .sql(table)
      .observe("o", metrics.head, metrics.tail: _*)
      .createOrReplaceTempView("observed")
    val sql = "SELECT id, g, sum(v) AS s FROM observed GROUP BY id, g"
    val changes = spark.sql(s"SELECT * FROM to_changelog(TABLE($sql), '$mode')")
    val running = new RunningChanges(changes, QuickFileSystem.temporaryDirectory())
    try
      steps.map { step =>
        stream.add(step: _*)
        running.next()
        running.progress.observedMetrics.get("o").toSeq
      }
    finally running.stop()
  }

  test("what is measured of changes adds up to what is there") {
    Seq("retract", "upsert").foreach { mode =>
      val stream = new RawStream(spark, "raw", "op STRING, id INT, g STRING, v INT")
      val batches =
        observed(stream, "SELECT * FROM from_changelog(TABLE(raw), 'op', 'id')", mode)(
          Seq("+I 1 a 5", "+I 2 b 2", "+I 3 a NULL"),
          Seq("-U 1 a 5", "+U 1 a 3", "-D 2 b 2"),
          Seq("-D 3 a NULL", "+I 4 a 9", "-D 4 a 9"))
      assert(
        batches == Seq(
          Seq(3L, 2L, 7L, 1L, 6L),
          Seq(-1L, -1L, -4L, -1L, -1L),
          Seq(-1L, 0L, 0L, 0L, 1L)))
    }
  }

  test("an upsert feed is measured by what its rows replace") {
    val stream = new RawStream(spark, "raw", "op STRING, id INT, g STRING, v INT")
    val table = "SELECT * FROM from_changelog(TABLE(raw), 'op', 'id', 'upsert')"
    spark.sql(table).observe("o", metrics.head, metrics(2)).createOrReplaceTempView("observed")
    val changes = spark.sql("SELECT * FROM to_changelog(TABLE(observed), 'upsert', 'id')")
    val running = new RunningChanges(changes, QuickFileSystem.temporaryDirectory())
    stream.add("+I 1 a 5", "+I 2 b 2")
    assert(running.next().size == 2)
    stream.add("+U 1 a 7")
    assert(running.next() == Seq("1 a 7 update_postimage"))
    assert(running.progress.observedMetrics.get("o").toSeq == Seq(0L, 2L))
    running.stop()
  }

  test("rows that only come are measured as Spark does") {
    val stream = new RawStream(spark, "raw", "id INT, g STRING, v INT")
    spark.table("raw").observe("o", expr("max(v) AS m")).createOrReplaceTempView("observed")
    val changes = spark.sql("SELECT * FROM to_changelog(TABLE(observed))")
    val running = new RunningChanges(changes, QuickFileSystem.temporaryDirectory())
    stream.add("1 a 5", "2 b 2")
    running.next()
    assert(running.progress.observedMetrics.get("o").toSeq == Seq(5))
    running.stop()
  }
}
