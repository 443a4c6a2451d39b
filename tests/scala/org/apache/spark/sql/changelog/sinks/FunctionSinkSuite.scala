// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.{DataFrame, Row}

import org.apache.spark.sql.changelog.sinks.function.{BatchFunction, FunctionSink}
import org.apache.spark.sql.changelog.testing._

/** A function of the user gets the net rows of each batch, in the form that it accepts. */
class FunctionSinkSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {

  private class Collected(override val accepts: String) extends BatchFunction {
    val batches: mutable.Buffer[(Long, Seq[String], Set[Row])] = mutable.Buffer.empty

    override def write(
        queryId: String,
        batchId: Long,
        key: java.util.List[String],
        rows: DataFrame): Unit =
      batches += ((batchId, key.asScala.toSeq, rows.collect().toSet))
  }

  private def function(name: String, accepts: String): Collected = {
    val collected = new Collected(accepts)
    FunctionSink.register(name, collected)
    collected
  }

  private val batches = Seq(
    Seq("+I 1 Oslo 5", "+I 2 Rome 7", "+I 3 Rome 1"),
    Seq("-U 1 Oslo 5", "+U 1 Rome 5", "-D 3 Rome 1"))

  /** Runs a query of the feed `t` over two batches. */
  private def run(name: String, sql: String, arguments: String = ""): Unit = {
    val raw = new RawStream(spark, "raw", "op STRING, id INT, city STRING, fare INT")
    spark
      .sql("SELECT * FROM from_changelog(TABLE(raw), 'op', 'id')")
      .createOrReplaceTempView("t")
    val query = spark
      .sql(s"SELECT * FROM to_changelog(TABLE($sql)$arguments)")
      .writeStream
      .format("changelog-function")
      .option("function", name)
      .option("checkpointLocation", QuickFileSystem.temporaryDirectory().getPath)
      .start()
    try
      batches.foreach { batch =>
        raw.add(batch: _*)
        query.processAllAvailable()
      }
    finally query.stop()
  }

  test("a function that accepts upserts gets the newest row of each changed key") {
    val totals = function("totals", "upsert")
    run("totals", "SELECT city, sum(fare) AS total FROM t GROUP BY city")
    assert(
      totals.batches.toSeq == Seq(
        (0L, Seq("city"), Set(Row("Oslo", 5L, false), Row("Rome", 8L, false))),
        (1L, Seq("city"), Set(Row("Oslo", 5L, true), Row("Rome", 12L, false)))))
  }

  test("a function that accepts upserts gets them without before images, too") {
    val rides = function("rides", "upsert")
    run("rides", "SELECT id, city FROM t", ", mode => 'upsert'")
    assert(
      rides.batches.last == ((1L, Seq("id"), Set(Row(1, "Rome", false), Row(3, "Rome", true)))))
  }

  test("a function that accepts retractions gets counts of equal rows") {
    val cities = function("cities", "retract")
    run("cities", "SELECT city FROM t")
    assert(
      cities.batches.toSeq == Seq(
        (0L, Nil, Set(Row("Oslo", 1L), Row("Rome", 2L))),
        (1L, Nil, Set(Row("Oslo", -1L)))))
  }

  test("a function gets only the changes that it accepts") {
    function("accepts_append", "append")
    function("accepts_retract", "retract")
    val totals = "SELECT city, sum(fare) AS total FROM t GROUP BY city"
    checkError("CHANGELOG_SINK_NEEDS_APPEND", "sink" -> "changelog-function") {
      run("accepts_append", totals)
    }
    checkError("CHANGELOG_SINK_NEEDS_APPEND", "sink" -> "changelog-function") {
      run("accepts_retract", totals, ", mode => 'upsert'")
    }
  }

  test("a name without a function is rejected, with the known names") {
    function("known", "append")
    val error = checkError("CHANGELOG_SINK_OPTION_INVALID", "value" -> "unknown") {
      run("unknown", "SELECT * FROM t")
    }
    assert(error.getMessage.contains("known"))
  }
}
