// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.runtime.{MemoryStream, StreamingQueryWrapper}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Encoders, Row}

import org.apache.spark.sql.changelog.execution.LazySortExec
import org.apache.spark.sql.changelog.execution.consolidate.ChangelogConsolidateExec
import org.apache.spark.sql.changelog.testing._

/** What Spark puts between our operators: nothing that isn't needed. */
class ChangelogReplayPlanSuite extends AnyFunSuite with ChangelogSession {

  /** The plan of the second batch, executed. */
  private def plan(sql: String, map: DataFrame => DataFrame = identity): SparkPlan = {
    val schema = StructType.fromDDL("op STRING, g STRING, x DOUBLE, n INT, at TIMESTAMP")
    val stream = MemoryStream[Row](2)(Encoders.row(schema), spark.sqlContext)
    stream.toDF().createOrReplaceTempView("changes")
    map(spark.sql("SELECT * FROM from_changelog(TABLE(changes), 'op')"))
      .createOrReplaceTempView("t")
    val query = spark
      .sql(s"SELECT * FROM to_changelog(TABLE($sql))")
      .writeStream
      .foreachBatch((batch: DataFrame, _: Long) => batch.collect().foreach(_ => ()))
      .option("checkpointLocation", QuickFileSystem.temporaryDirectory().getPath)
      .start()
    try {
      (1 to 2).foreach { batch =>
        stream.addData(Row("+I", "a", 0.5, batch, null))
        query.processAllAvailable()
      }
      query.asInstanceOf[StreamingQueryWrapper].streamingQuery.lastExecution.executedPlan
    } finally query.stop()
  }

  private def exchanges(plan: SparkPlan): Int = plan.collect { case e: ShuffleExchangeExec =>
    e
  }.size

  /** The sorts between the replay and what nets its results. */
  private def sortsAbove(plan: SparkPlan): Int = {
    val netting = plan.collectFirst { case netting: ChangelogConsolidateExec => netting }.get
    val all = netting.child.collect { case sort: LazySortExec => sort }.size
    val below = netting.collectFirst { case replay: ChangelogReplayExec => replay }.get
    all - below.collect { case sort: LazySortExec => sort }.size
  }

  private def stateful(plan: SparkPlan): Seq[ChangelogReplayExec] =
    plan.collect { case replay: ChangelogReplayExec => replay }

  test("of the results of functions over groups only what differs is shuffled") {
    val session = spark
    import session.implicits._
    val planned = plan(
      "SELECT * FROM t",
      _.select("g", "n")
        .as[(String, Int)]
        .groupByKey(_._1)
        .flatMapGroups((_, rows) => rows.flatMap(row => (0 until 10 * row._2)))
        .toDF("x"))
    val Seq(results, input) = planned.collect { case shuffle: ShuffleExchangeExec => shuffle }
    assert(input.find(_ eq results).isEmpty)
    assert(Seq(results, input).map(_.metrics("shuffleRecordsWritten").value) == Seq(20, 1))
  }

  test("an aggregate shuffles its input, and neither shuffles nor sorts replayed rows") {
    for (group <- Seq("g", "x", "g, n % 2", "'all'")) {
      val planned = plan(s"SELECT $group, collect_list(n), any_value(x) FROM t GROUP BY $group")
      assert(exchanges(planned) == 1 && sortsAbove(planned) == 0, planned)
    }
    val global = plan("SELECT collect_list(n), count(*) FROM t")
    assert(exchanges(global) == 1 && sortsAbove(global) == 0, global)
  }

  test("sessions are merged in the order in which rows are replayed") {
    val planned =
      plan("SELECT g, session_window, count(*) FROM t GROUP BY g, session_window(at, '1 hour')")
    // what is netted by group and session comes sorted by group and version
    assert(exchanges(planned) == 1 && sortsAbove(planned) == 1, planned)
  }

  test("a window sorts nothing that is replayed in its order") {
    val planned = plan("SELECT *, sum(n) OVER (PARTITION BY g ORDER BY x DESC) AS s FROM t")
    assert(exchanges(planned) == 1 && sortsAbove(planned) == 1, planned)
  }

  test("windows over the same partitions keep their rows once") {
    val planned = plan("""SELECT *, sum(n) OVER (PARTITION BY g ORDER BY x) AS s,
        |  rank() OVER (PARTITION BY g ORDER BY at) AS place,
        |  max(x) OVER (PARTITION BY g) AS most
        |FROM t""".stripMargin)
    assert(exchanges(planned) == 1 && stateful(planned).size == 1, planned)
  }
}
