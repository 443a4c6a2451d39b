// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec
import org.apache.spark.sql.execution.streaming.runtime.{MemoryStream, StreamingQueryWrapper}
import org.apache.spark.sql.execution.{SortExec, SparkPlan}
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{DataFrame, SQLContext}

import org.apache.spark.sql.changelog.testing.ChangelogSession

/** Which stages a batch has. */
class PrepareStagesSuite extends AnyFunSuite with ChangelogSession {

  private implicit lazy val context: SQLContext = spark.sqlContext

  private val join =
    "SELECT a.g, count(*) AS n FROM a JOIN b ON a.id = b.id GROUP BY a.g"

  test("a source without news takes no stage, one with news takes its own") {
    val (a, b) = (stream("a"), stream("b"))
    a.addData((1, "x"))
    b.addData((1, "y"))
    running(join) { query =>
      val both = planOf(query)
      assert(count[ShuffleExchangeExec](both) == 3 && count[NoRowsExec](both) == 0)
      a.addData((2, "x"))
      val one = planOf(query)
      assert(count[ShuffleExchangeExec](one) == 2 && count[NoRowsExec](one) == 1)
      b.addData((2, "y"))
      val other = planOf(query)
      assert(count[ShuffleExchangeExec](other) == 2 && count[NoRowsExec](other) == 1)
      // all rows that there are, of both batches
      assert(query.lastProgress.stateOperators.map(_.numRowsTotal).toSeq == Seq(1, 4))
    }
  }

  test("rows are sorted for operators, and by Spark's own sorter in no plan") {
    val (a, b) = (stream("a"), stream("b"))
    a.addData((1, "x"), (2, "x"), (3, "y"), (2, "z"))
    b.addData((3, "x"), (2, "y"), (1, "y"))
    running(join) { query =>
      val plan = planOf(query)
      assert(count[LazySortExec](plan) >= 2 && count[SortExec](plan) == 0)
    }
  }

  test("a watermark without news is still there: others are found by their place") {
    val (a, b) = (timed("a"), timed("b"))
    a.addData((1, "x"))
    b.addData((1, "y"))
    running("""SELECT a.id, b.id AS other FROM a LEFT JOIN b
      ON a.id = b.id AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR""") { query =>
      assert(count[EventTimeWatermarkExec](planOf(query)) == 2)
      b.addData((2, "y"))
      val plan = planOf(query)
      assert(count[EventTimeWatermarkExec](plan) == 2 && count[NoRowsExec](plan) == 0)
    }
  }

  test("a query without changes is prepared as before") {
    val plan =
      spark.range(10).repartition(2).sortWithinPartitions("id").queryExecution.executedPlan
    assert(PrepareStages.preColumnarTransitions(plan) eq plan)
    assert(PrepareStages.postColumnarTransitions(plan) eq plan)
  }

  private def stream(name: String): MemoryStream[(Int, String)] = arriving(name, identity)

  private def timed(name: String): MemoryStream[(Int, String)] =
    arriving(
      name,
      _.selectExpr("*", "timestamp_seconds(id) AS at").withWatermark("at", "1 minute"))

  private def arriving(
      name: String,
      seen: DataFrame => DataFrame): MemoryStream[(Int, String)] = {
    val session = spark
    import session.implicits._
    val rows = MemoryStream[(Int, String)]
    seen(rows.toDF().toDF("id", "g").selectExpr("*", "'insert' AS _change_type"))
      .createOrReplaceTempView(s"raw_$name")
    spark
      .sql(s"SELECT * FROM from_changelog(TABLE(raw_$name), key => 'id')")
      .createOrReplaceTempView(name)
    rows
  }

  private def running(sql: String)(check: StreamingQuery => Unit): Unit = {
    val query = spark
      .sql(s"SELECT * FROM to_changelog(TABLE($sql))")
      .writeStream
      .format("noop")
      .start()
    try check(query)
    finally query.stop()
  }

  /** That of the last batch that has run with all there is. */
  private def planOf(query: StreamingQuery): SparkPlan = {
    query.processAllAvailable()
    query.asInstanceOf[StreamingQueryWrapper].streamingQuery.lastExecution.executedPlan
  }

  private def count[T: reflect.ClassTag](plan: SparkPlan): Int =
    plan.collect { case node: T => node }.size
}
