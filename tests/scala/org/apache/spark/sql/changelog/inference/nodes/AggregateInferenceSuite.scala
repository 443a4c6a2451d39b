// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.changelog.inference.InferenceTest
import org.apache.spark.sql.changelog.plans.StateTable

class AggregateInferenceSuite extends InferenceTest {

  test("over new rows groups come and change but never go") {
    appends("t", "a INT, v INT")
    val agg = find(infer("SELECT a, sum(v) FROM t GROUP BY a"), "ChangelogAggregate")
    assert(agg.mode.toString == "[I,UB,UA]")
    assert(agg.strategy.contains("plain buffers"))
    assert(agg.state == Seq(StateTable("groups", Seq("a"), "buffers", "unbounded")))
  }

  test("over rows that only change, groups can go, and both images are asked for") {
    changelog("t", "a INT, v INT", InsertUpdate)
    assert(
      modes(infer("SELECT a, count(*) FROM t GROUP BY a", Upsert)) ==
        "Aggregate[I,UA,D] < Source[I,UB,UA]")
  }

  test("sums and counts over changing rows keep signed buffers") {
    changelog("t", "a INT, v INT", All)
    val sql = "SELECT a, count(*), sum(v), avg(v), stddev(v) FROM t GROUP BY a"
    val agg = find(infer(sql), "ChangelogAggregate")
    assert(agg.strategy.contains("signed buffers"))
    assert(agg.state.map(_.value) == Seq("buffers"))
  }

  test("extrema over changing rows keep all values, counted") {
    changelog("t", "a INT, v INT", All)
    val agg = find(infer("SELECT a, min(v), max(v) FROM t GROUP BY a"), "ChangelogAggregate")
    assert(agg.strategy.contains("signed buffers and counted values"))
    assert(
      agg.state == Seq(
        StateTable("groups", Seq("a"), "buffers and best values of v", "unbounded"),
        StateTable("values of v", Seq("a", "v"), "count", "unbounded")))
  }

  test("distinct functions of one argument share its values") {
    appends("t", "a INT, v INT")
    val sql = "SELECT a, count(DISTINCT v), sum(DISTINCT v) FROM t GROUP BY a"
    val agg = find(infer(sql), "ChangelogAggregate")
    assert(agg.strategy.contains("plain buffers and distinct values"))
    assert(agg.state.map(_.table) == Seq("groups", "distinct values of v"))
  }

  test("a function that can't count backwards keeps the rows, but only where rows leave") {
    val sql = "SELECT a, collect_list(v) FROM t GROUP BY a"
    appends("t", "a INT, v INT")
    assert(find(infer(sql), "ChangelogAggregate").strategy.contains("plain buffers"))
    changelog("t", "a INT, v INT", All)
    val agg = find(infer(sql), "ChangelogAggregate")
    assert(agg.strategy.contains("recompute touched groups"))
    assert(agg.state.last == StateTable("rows", Seq("a", "row"), "count", "unbounded"))
  }

  test("sessions go, even over new rows, of which only their buffers are kept") {
    appends("t", "a INT, ts TIMESTAMP", watermark = Some("ts"))
    val sql = "FROM t GROUP BY a, session_window(ts, '1 hour')"
    Seq(
      s"SELECT a, session_window, count(*) $sql" -> "buffers",
      s"SELECT a, session_window $sql" -> "nothing").foreach { case (query, kept) =>
      val agg = find(infer(query), "ChangelogAggregate")
      assert(agg.mode.toString == "[I,UB,UA,D]")
      val key = Seq("a", "session_window")
      assert(agg.state == Seq(StateTable("sessions", key, kept, "watermark on session_window")))
      val closed = find(infer(query, Append), "ChangelogAggregate")
      assert(closed.mode.toString == "[I]")
      assert(closed.strategy.exists(_.endsWith("emitted when the watermark closes the group")))
    }
  }

  test("sessions of DISTINCT values, of rows that go or are seen in order keep rows") {
    appends("t", "a INT, ts TIMESTAMP", watermark = Some("ts"))
    changelog("c", "a INT, ts TIMESTAMP", All)
    Seq(
      "count(DISTINCT a) FROM t",
      "count(*) FROM c",
      "collect_list(a) FROM t",
      "max_by(a, a % 2) FROM t").foreach { of =>
      val agg =
        find(infer(s"SELECT $of GROUP BY session_window(ts, '1 hour')"), "ChangelogAggregate")
      assert(agg.strategy.contains("recompute touched groups"))
      assert(agg.state.map(_.value) == Seq("count"))
    }
  }

  test("DISTINCT over new rows only inserts, and an append reader takes it") {
    appends("t", "a INT, v INT")
    val root = infer("SELECT DISTINCT a FROM t", Append)
    assert(modes(root) == "Aggregate[I] < Source[I]")
    assert(find(root, "ChangelogAggregate").strategy.contains("groups only"))
  }

  test("DISTINCT over changing rows counts rows") {
    changelog("t", "a INT, v INT", All)
    val root = infer("SELECT DISTINCT a FROM t")
    assert(modes(root) == "Aggregate[I,UB,UA,D] < Source[I,UB,UA,D]")
    assert(find(root, "ChangelogAggregate").state.map(_.value) == Seq("row count"))
  }

  test("an aggregate without groups has the empty key, by which its row is replaced") {
    appends("t", "a INT, v INT")
    val root = infer("SELECT count(*), max(v) FROM t", Upsert)
    assert(modes(root) == "Aggregate[I,UA] < Source[I]")
    val agg = find(root, "ChangelogAggregate")
    assert(agg.requiredKey.exists(_.isEmpty) && agg.state.head.key.isEmpty)
    assert(agg.reasons.head == "no -U: the result is one row, which the sink replaces")
  }

  test("groups of event time are bounded by its watermark") {
    appends("t", "ts TIMESTAMP, v INT", watermark = Some("ts"))
    val direct = infer("SELECT ts, count(*) FROM t GROUP BY ts")
    assert(find(direct, "ChangelogAggregate").state.map(_.boundedBy) == Seq("watermark on ts"))
    val window = infer("SELECT window, count(*) FROM t GROUP BY window(ts, '1 hour')")
    assert(modes(window) == "Aggregate[I,UB,UA] < Source[I]")
    assert(
      find(window, "ChangelogAggregate").state.map(_.boundedBy) == Seq("watermark on window"))
  }

  test("to an append reader a window comes once, when it is closed, even over changing rows") {
    val sql = "SELECT window.start, count(*) FROM t GROUP BY window(ts, '1 hour')"
    appends("t", "ts TIMESTAMP, v INT", watermark = Some("ts"))
    val root = infer(sql, Append)
    assert(modes(root) == "Aggregate[I] < Source[I]")
    assert(
      find(root, "ChangelogAggregate").strategy
        .contains("plain buffers, emitted when the watermark closes the group"))
    changelog("t", "ts TIMESTAMP, v INT", All, watermark = Some("ts"))
    assert(modes(infer(sql, Append)) == "Aggregate[I] < Source[I,UB,UA,D]")
  }

  test("without a watermark a window never closes, and an append reader can't have it") {
    appends("t", "ts TIMESTAMP, v INT")
    checkRefused(
      "CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES",
      Map(
        "consumer" -> "ToChangelog append",
        "kinds" -> "update",
        "producer" -> "ChangelogAggregate [window]")) {
      infer("SELECT window.start, count(*) FROM t GROUP BY window(ts, '1 hour')", Append)
    }
  }
}
