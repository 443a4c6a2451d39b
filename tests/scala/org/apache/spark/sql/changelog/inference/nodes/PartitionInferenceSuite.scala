// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.api.python.PythonEvalType
import org.apache.spark.sql.catalyst.expressions.PythonUDF
import org.apache.spark.sql.catalyst.plans.logical.{
  DeduplicateWithinWatermark, FlatMapGroupsInPandas
}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.inference.InferenceTest
import org.apache.spark.sql.changelog.plans.StateTable

/** Nodes that see all rows of a partition: those that are computed again, and Spark's own. */
class PartitionInferenceSuite extends InferenceTest {

  test("a window function is computed again for each partition that is touched") {
    changelog("t", "id INT, g STRING, v INT", All, key = Seq("id"))
    val root = infer("SELECT id, sum(v) OVER (PARTITION BY g ORDER BY v) AS s FROM t", Upsert)
    assert(modes(root) == "Window[I,UA,D] < Source[I,UB,UA,D]")
    val window = find(root, "ChangelogWindow")
    assert(window.strategy.contains("recompute touched partitions"))
    assert(window.state == Seq(StateTable("rows", Seq("g", "row"), "count", "unbounded")))
  }

  test("windows over the same partitions keep their rows once") {
    changelog("t", "id INT, g STRING, v INT", All, key = Seq("id"))
    def windows(other: String) = {
      val root = infer(s"""SELECT id, sum(v) OVER (PARTITION BY g ORDER BY v) AS s,
        |  max(v) OVER (PARTITION BY $other ORDER BY id) AS l FROM t""".stripMargin)
      val upper = find(root, "ChangelogWindow")
      Seq(upper, find(upper.children.head, "ChangelogWindow"))
    }
    assert(windows("g").map(_.state.size) == Seq(0, 1))
    assert(
      windows("g").map(_.strategy.get) == Seq(
        "recompute touched partitions, over the rows of the window below",
        "recompute touched partitions"))
    assert(windows("g, id").map(_.state.size) == Seq(1, 1))
  }

  test("functions of near rows are computed again around changed rows") {
    changelog("t", "id INT, g STRING, v INT", All, key = Seq("id"))
    def strategy(call: String): Option[String] =
      find(infer(s"SELECT id, $call AS x FROM t"), "ChangelogWindow").strategy
    val near = Some("recompute the rows around changed rows")
    assert(strategy("lag(v, 3) OVER (PARTITION BY g ORDER BY v)") == near)
    assert(strategy("sum(v) OVER (ORDER BY v ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING)") == near)
    val all = Some("recompute touched partitions")
    assert(strategy("lag(v) IGNORE NULLS OVER (PARTITION BY g ORDER BY v)") == all)
    assert(strategy("lag(v, 1000) OVER (PARTITION BY g ORDER BY v)") == all)
    assert(strategy("sum(v) OVER (ORDER BY v ROWS 2 PRECEDING), rank() OVER (ORDER BY v)") == all)
  }

  test("a window function over new rows changes rows all the same") {
    appends("t", "g STRING, v INT")
    val sql = "SELECT g, lag(v) OVER (PARTITION BY g ORDER BY v) AS l FROM t"
    assert(modes(infer(sql)) == "Window[I,UB,UA,D] < Source[I]")
    checkRefused(
      "CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES",
      Map("kinds" -> "update and delete", "producer" -> "ChangelogWindow [g]")) {
      infer(sql, Append)
    }
  }

  test("a window function that runs in event time only inserts, for a reader of new rows") {
    appends("e", "g STRING, v INT, ts TIMESTAMP", watermark = Some("ts"))
    def window(call: String, over: String = "PARTITION BY g ORDER BY ts") =
      s"SELECT g, $call OVER ($over) AS x FROM e"
    val running = find(infer(window("sum(v)"), Append), "ChangelogWindow")
    assert(running.mode.toString == "[I]")
    assert(running.strategy.contains("run through passed rows"))
    assert(
      running.state == Seq(
        StateTable("rows", Seq("ts", "g", "row"), "count", "watermark on ts"),
        StateTable("partitions", Seq("g"), "buffers", "unbounded")))
    assert(modes(infer(window("sum(v)"))) == "Window[I,UB,UA,D] < Source[I]")
    Seq(
      window("lag(v)"),
      window("ntile(2)"),
      window("collect_list(v)"),
      window("sum(v)", "ORDER BY ts DESC"),
      window("sum(v)", "ORDER BY ts, v"),
      window("sum(v)", "ORDER BY v"),
      window("sum(v)", "PARTITION BY g"),
      window("sum(v)", "ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW")).foreach { sql =>
      withClue(sql) {
        checkRefused("CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES", Map.empty)(infer(sql, Append))
      }
    }
    changelog("t", "g STRING, v INT, ts TIMESTAMP", All, watermark = Some("ts"))
    checkRefused("CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES", Map.empty) {
      infer(window("sum(v)").replace("FROM e", "FROM t"), Append)
    }
  }

  test("a function over groups is computed again too") {
    import testImplicits._
    changelog("t", "k INT, v INT", All)
    val groups =
      spark.table("t").as[(Int, Int)].groupByKey(_._1).mapGroups((k, rows) => (k, rows.size))
    val root = inferPlan(groups.queryExecution.analyzed)
    assert(find(root, "ChangelogMapGroups").mode.toString == "[I,UB,UA,D]")
    assert(find(root, "ChangelogMapGroups").strategy.contains("recompute touched partitions"))
  }

  test("a function over groups by event time is called once for a reader of new rows") {
    appends("e", "ts TIMESTAMP, v INT", watermark = Some("ts"))
    def map(deterministic: Boolean) = {
      val rows = spark.table("e").queryExecution.analyzed
      val result = StructType.fromDDL("n INT")
      val function = PythonUDF(
        "f",
        null,
        result,
        rows.output,
        PythonEvalType.SQL_GROUPED_MAP_PANDAS_UDF,
        deterministic)
      FlatMapGroupsInPandas(rows.output.take(1), function, toAttributes(result), rows)
    }
    val closed =
      find(inferPlan(map(deterministic = true), Append), "ChangelogFlatMapGroupsInPandas")
    assert(closed.mode.toString == "[I]")
    assert(closed.strategy.contains("compute closed partitions"))
    assert(closed.state.map(_.boundedBy) == Seq("watermark on ts"))
    val every = find(inferPlan(map(deterministic = true)), "ChangelogFlatMapGroupsInPandas")
    assert(every.mode.toString == "[I,UB,UA,D]")
    assert(every.state == closed.state)
    checkRefused(
      "CHANGELOG_NONDETERMINISTIC_EXPRESSION",
      Map("expression" -> "f(ts, v)", "node" -> "ChangelogFlatMapGroupsInPandas [ts] f")) {
      inferPlan(map(deterministic = false))
    }
    inferPlan(map(deterministic = false), Append)
  }

  test("the rows of two inputs that are grouped together are kept together") {
    import testImplicits._
    changelog("t", "k INT, v INT", All)
    changelog("r", "k INT, w STRING", All)
    val left = spark.table("t").as[(Int, Int)].groupByKey(_._1)
    val right = spark.table("r").as[(Int, String)].groupByKey(_._1)
    val both = left.cogroup(right)((k, rows, others) => Seq((k, rows.size, others.size)))
    val node = find(inferPlan(both.queryExecution.analyzed), "ChangelogCoGroup")
    assert(
      node.state == Seq(StateTable("rows", Seq("value", "side", "row"), "count", "unbounded")))
  }

  test("a function over rows hands changes on") {
    import testImplicits._
    changelog("t", "k INT, v INT", All)
    val mapped = spark.table("t").as[(Int, Int)].map(row => row._1 + row._2)
    assert(
      find(inferPlan(mapped.queryExecution.analyzed), "Generate").mode.toString == "[I,UB,UA,D]")
  }

  test("a stateful operator of Spark's takes new rows only") {
    import testImplicits._
    val counted = (name: String) =>
      spark
        .table(name)
        .as[(Int, Int)]
        .groupByKey(_._1)
        .flatMapGroupsWithState(OutputMode.Append, GroupStateTimeout.NoTimeout) {
          (k: Int, rows: Iterator[(Int, Int)], _: GroupState[Int]) => rows.map(_ => k)
        }
        .queryExecution
        .analyzed
    appends("e", "k INT, v INT")
    assert(find(inferPlan(counted("e"), Append), "FlatMapGroupsWithState").mode.toString == "[I]")
    changelog("t", "k INT, v INT", All)
    checkRefused(
      "CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES",
      Map(
        "consumer" -> "FlatMapGroupsWithState",
        "kinds" -> "update and delete",
        "producer" -> "ChangelogSource [k, v]")) {
      inferPlan(counted("t"))
    }
  }

  test("an operator that only updates is refused for updates alone") {
    appends("e", "k INT, v INT")
    val counts = spark.sql("SELECT k, count(*) AS n FROM e GROUP BY k").queryExecution.analyzed
    checkRefused(
      "CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES",
      Map("consumer" -> "DeduplicateWithinWatermark", "kinds" -> "update")) {
      inferPlan(DeduplicateWithinWatermark(counts.output.take(1), counts))
    }
  }

  test("a function over whole partitions takes new rows only") {
    import testImplicits._
    changelog("t", "k INT, v INT", All)
    val mapped = spark.table("t").as[(Int, Int)].mapPartitions(_.take(1))
    checkRefused("CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES", Map("consumer" -> "MapPartitions")) {
      inferPlan(mapped.queryExecution.analyzed)
    }
  }
}
