// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** What a reader gets: one change per key and batch, in each mode. */
class ToChangelogFunctionSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private lazy val oracle = new Oracle(spark)
  private val keyed = Feed("t", "id INT, v STRING, n INT", Seq("id"))
  private val bag = keyed.copy(key = Nil)
  private val inserts = Feed("i", "id INT, v STRING, n INT", insertOnly = true)

  private val moves = Seq(
    Seq("+I 1 a 1", "+I 2 b 2", "+I 3 c 3", "+I 4 d 4", "-D 4 d 4"),
    Seq("-U 1 a 1", "+U 1 a 9", "-U 2 b 2", "+U 2 x 2", "-D 3 c 3", "+I 3 c 3"),
    Seq("-U 1 a 9", "+U 1 y 9", "-U 1 y 9", "+U 1 z 9", "-U 2 x 2", "+U 5 x 2"),
    Seq("-U 1 z 9", "+U 1 q 0", "-U 1 q 0", "+U 1 z 9", "-D 3 c 3"))

  private def run(
      sql: String,
      feeds: Seq[Feed] = Seq(keyed),
      variant: Variant = Variant(),
      steps: Seq[Seq[String]] = moves): Seq[Seq[String]] = {
    val changes = steps.map(step => Step(feeds.head, step: _*))
    oracle.check(Program(feeds, sql, changes), variant).map(_.map(_.toString).sorted)
  }

  test("a changelog passed on is netted to one change per key") {
    assert(
      run("SELECT * FROM t") == Seq(
        Seq("+I 1 a 1", "+I 2 b 2", "+I 3 c 3"),
        Seq("+U 1 a 9", "+U 2 x 2", "-U 1 a 1", "-U 2 b 2"),
        Seq("+I 5 x 2", "+U 1 z 9", "-D 2 x 2", "-U 1 a 9"),
        Seq("-D 3 c 3")))
  }

  test("without a key the rows of a changelog come and go") {
    assert(
      run("SELECT * FROM t", Seq(bag)) == Seq(
        Seq("+I 1 a 1", "+I 2 b 2", "+I 3 c 3"),
        Seq("+I 1 a 9", "+I 2 x 2", "-D 1 a 1", "-D 2 b 2"),
        Seq("+I 1 z 9", "+I 5 x 2", "-D 1 a 9", "-D 2 x 2"),
        Seq("-D 3 c 3")))
  }

  test("in upsert mode a changelog passed on has no old rows, its key given or derived") {
    val expected = Seq(
      Seq("+I 1 a 1", "+I 2 b 2", "+I 3 c 3"),
      Seq("+U 1 a 9", "+U 2 x 2"),
      Seq("+I 5 x 2", "+U 1 z 9", "-D 2 x 2"),
      Seq("-D 3 c 3"))
    assert(run("SELECT * FROM t", variant = Variant("upsert", Seq("id"))) == expected)
    val wider = run("SELECT * FROM t", variant = Variant("upsert", Seq("id", "v")))
    assert(wider(1) == Seq("+I 2 x 2", "+U 1 a 9", "-D 2 b 2"))
  }

  test("a projection without the column that changes emits nothing") {
    assert(
      run("SELECT id, v FROM t") == Seq(
        Seq("+I 1 a", "+I 2 b", "+I 3 c"),
        Seq("+U 2 x", "-U 2 b"),
        Seq("+I 5 x", "+U 1 z", "-D 2 x", "-U 1 a"),
        Seq("-D 3 c")))
    assert(run("SELECT v FROM t")(1) == Seq("+I x", "-D b"))
  }

  test("a row that enters a filter is inserted and one that leaves is deleted") {
    val expected = Seq(
      Seq("+I 1 a 1", "+I 2 b 2", "+I 3 c 3"),
      Seq("-D 2 b 2", "+U 1 a 9", "-U 1 a 1").sorted,
      Seq("-D 1 a 9"),
      Seq("-D 3 c 3"))
    assert(run("SELECT * FROM t WHERE v < 'd'") == expected)
    val upsert = run("SELECT * FROM t WHERE v < 'd'", variant = Variant("upsert", Seq("id")))
    assert(upsert(1) == Seq("+U 1 a 9", "-D 2 b 2"))
  }

  test("a group that enters or leaves HAVING is inserted or deleted") {
    val sql = "SELECT v, count(*) AS c FROM t GROUP BY v HAVING count(*) > 1"
    val steps = Seq(
      Seq("+I 1 a 1", "+I 2 a 1", "+I 3 b 1"),
      Seq("-U 2 a 1", "+U 2 b 1"),
      Seq("+I 4 b 1", "+I 5 a 1"))
    val expected =
      Seq(Seq("+I a 2"), Seq("+I b 2", "-D a 2"), Seq("+I a 2", "+U b 3", "-U b 2"))
    assert(run(sql, steps = steps) == expected)
    assert(
      run(sql, variant = Variant("upsert", Seq("v")), steps = steps)(2) == Seq(
        "+I a 2",
        "+U b 3"))
  }

  test("rows made by a generator are netted") {
    val split = Feed("t", "id INT, v STRING", Seq("id"))
    val sql = "SELECT id, w FROM t LATERAL VIEW explode(split(v, ',')) AS w"
    val steps = Seq(
      Seq("+I 1 a,b", "+I 2 c"),
      Seq("-U 1 a,b", "+U 1 b,d", "-U 2 c", "+U 2 c"),
      Seq("-U 1 b,d", "+U 1 b", "-D 2 c"))
    assert(
      run(sql, Seq(split), steps = steps) == Seq(
        Seq("+I 1 a", "+I 1 b", "+I 2 c"),
        Seq("+I 1 d", "-D 1 a"),
        Seq("-D 1 d", "-D 2 c")))
    val outer = "SELECT id, w FROM t LATERAL VIEW OUTER explode(split(v, ',')) AS w"
    assert(run(outer, Seq(split), steps = steps)(1) == Seq("+I 1 d", "-D 1 a"))
  }

  test("the copies made for grouping sets pass changes on") {
    run("SELECT v, n, count(*), sum(id) FROM t GROUP BY CUBE (v, n)")
    run("SELECT v, n, count(*) FROM t GROUP BY GROUPING SETS ((v), (n), ())")
  }

  test("a union of new rows and changes gives both") {
    val feeds = Seq(keyed, inserts)
    val sql = "SELECT id, v FROM t UNION ALL SELECT id, v FROM i"
    val steps = Seq(
      Step(
        Map(
          "t" -> parse(keyed, "+I 1 a 1"),
          "i" -> parse(inserts, "+I 1 a 1", "+I 1 a 1", "+I 7 g 1"))),
      Step(Map("t" -> parse(keyed, "-U 1 a 1", "+U 1 b 1"), "i" -> parse(inserts, "+I 1 a 1"))))
    val emitted = oracle.check(Program(feeds, sql, steps)).map(_.map(_.toString).sorted)
    assert(emitted == Seq(Seq("+I 1 a", "+I 1 a", "+I 1 a", "+I 7 g"), Seq("+I 1 b")))
  }

  test("a union of a feed with itself doubles its changes, and cancels what cancels") {
    assert(
      run("SELECT id, n FROM t UNION ALL SELECT id, n FROM t")(1) ==
        Seq("+I 1 9", "+I 1 9", "-D 1 1", "-D 1 1"))
    val swap = "SELECT v AS x FROM t UNION ALL SELECT CAST(n AS STRING) FROM t"
    assert(
      run(swap, steps = Seq(Seq("+I 1 a 7"), Seq("-U 1 a 7", "+U 1 7 8"), Seq("-D 1 7 8"))) ==
        Seq(Seq("+I 7", "+I a"), Seq("+I 8", "-D a"), Seq("-D 7", "-D 8")))
  }

  test("repartitioning, sorting and hints leave changes alone") {
    val plain = run("SELECT * FROM t")
    assert(run("SELECT /*+ REPARTITION(4) */ * FROM t") == plain)
    assert(run("SELECT /*+ REPARTITION(3, v) */ * FROM t ORDER BY n") == plain)
    assert(run("SELECT /*+ REBALANCE(v) */ * FROM t SORT BY n") == plain)
  }

  test("a watermark on the stream leaves changes alone") {
    val stream = new RawStream(spark, "events", "op STRING, k STRING, at TIMESTAMP")
    stream.toDF.withWatermark("at", "1 hour").createOrReplaceTempView("events")
    val sql = "SELECT k, count(*) AS c FROM from_changelog(TABLE(events), 'op') GROUP BY k"
    val dir = QuickFileSystem.temporaryDirectory()
    val running = new RunningChanges(spark.sql(s"SELECT * FROM to_changelog(TABLE($sql))"), dir)
    stream.add("+I a 2020-01-01T10:00:00", "+I b 2020-01-01T12:00:00")
    assert(running.next() == Seq("a 1 insert", "b 1 insert"))
    stream.add("-D a 2020-01-01T10:00:00", "+I c 2020-01-01T01:00:00")
    assert(running.next() == Seq("a 1 delete", "c 1 insert"))
    assert(running.progress.eventTime.containsKey("watermark"))
    running.stop()
  }

  test("maps pass through, compared by what else a row has") {
    val stream = new RawStream(spark, "raw", "op STRING, id INT, v STRING")
    def start(key: String) = {
      val table = s"from_changelog(TABLE(SELECT op, id, map(v, id) AS m FROM raw), 'op'$key)"
      val changes =
        s"SELECT id, m['a'], _change_type FROM to_changelog(TABLE(SELECT * FROM $table))"
      new RunningChanges(spark.sql(changes), QuickFileSystem.temporaryDirectory())
    }
    Seq("", ", 'id'").foreach { key =>
      val running = start(key)
      stream.reset()
      stream.add("+I 1 a", "+I 2 b", "-D 2 b")
      assert(running.next() == Seq("1 1 insert"), key)
      running.stop()
    }
  }

  test("append mode passes new rows and refuses changes, naming who makes them") {
    assert(
      run(
        "SELECT v FROM i WHERE n > 1",
        Seq(inserts),
        Variant("append"),
        Seq(Seq("+I 1 a 1", "+I 2 b 2"))) ==
        Seq(Seq("+I b")))
    new RawStream(spark, "raw", "op STRING, id INT, v STRING")
    val refused = Seq(
      (
        "SELECT * FROM from_changelog(TABLE(raw), 'op') WHERE id > 1",
        "update and delete",
        "ChangelogSource"),
      ("SELECT v, count(*) FROM raw GROUP BY v", "update", "ChangelogAggregate [v]"),
      (
        "SELECT id FROM from_changelog(TABLE(raw), 'op', 'id', 'upsert')",
        "update and delete",
        "ChangelogNormalize"))
    refused.foreach { case (sql, kinds, producer) =>
      val changes = spark.sql(s"SELECT * FROM to_changelog(TABLE($sql), 'append')")
      val error = checkError("CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES", "kinds" -> kinds) {
        changes.writeStream.format("noop").start()
      }
      Seq(s"but the node $producer", s"emits $kinds changes").foreach { wording =>
        assert(error.getMessage.contains(wording))
      }
    }
  }

  test("upsert mode needs a key that identifies a row") {
    new RawStream(spark, "raw", "op STRING, id INT, v STRING")
    def start(sql: String, key: String = "") =
      spark
        .sql(s"SELECT * FROM to_changelog(TABLE($sql), 'upsert'$key)")
        .writeStream
        .format("noop")
        .start()
    val read = "from_changelog(TABLE(raw), 'op', 'id')"
    checkError("CHANGELOG_KEY_NOT_UNIQUE", "key" -> "(v)", "keys" -> "(id)") {
      start(s"SELECT * FROM $read", ", 'v'")
    }
    checkError("CHANGELOG_KEY_MISSING")(start(s"SELECT v FROM $read"))
    checkError("CHANGELOG_COLUMN_NOT_FOUND", "function" -> "to_changelog", "column" -> "x") {
      start(s"SELECT * FROM $read", ", 'x'")
    }
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "mode", "value" -> "'update'") {
      spark.sql(s"SELECT * FROM to_changelog(TABLE(SELECT * FROM $read), 'update')")
    }
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "change_type", "value" -> "''") {
      spark.sql(s"SELECT * FROM to_changelog(TABLE(SELECT * FROM $read), change_type => '')")
    }
    checkError("CHANGELOG_COLUMN_RESERVED", "column" -> "v") {
      spark.sql(s"SELECT * FROM to_changelog(TABLE(SELECT * FROM $read), change_type => 'V')")
    }
    checkError("CHANGELOG_NESTED", "function" -> "from_changelog", "outer" -> "to_changelog") {
      spark
        .sql(s"SELECT * FROM to_changelog(TABLE(SELECT * FROM $read))")
        .createOrReplaceTempView("changes")
      spark.sql("SELECT * FROM from_changelog(TABLE(changes), '_change_type')")
    }
    checkError("CHANGELOG_NESTED", "function" -> "to_changelog") {
      spark.sql(
        "SELECT * FROM to_changelog(TABLE(SELECT * EXCEPT (_change_type) FROM to_changelog(TABLE(raw))))")
    }
  }

  test("the column of the change type is called as one says") {
    val stream = new RawStream(spark, "raw", "op STRING, id INT, v STRING")
    val read = "SELECT id, v AS _change_type FROM from_changelog(TABLE(raw), 'op', 'id')"
    val changes =
      spark.sql(s"SELECT * FROM to_changelog(TABLE($read), 'upsert', change_type => 'kind')")
    assert(changes.columns.toSeq == Seq("id", "_change_type", "kind"))
    val running = new RunningChanges(changes, QuickFileSystem.temporaryDirectory())
    stream.add("+I 1 a", "+I 2 b")
    assert(running.next() == Seq("1 a insert", "2 b insert"))
    stream.add("-U 1 a", "+U 1 c", "-D 2 b")
    assert(running.next() == Seq("1 c update_postimage", "2 b delete"))
    running.stop()
    assert(spark.sql(s"EXPLAIN CHANGELOG $read").head().getString(0).contains("key=(id)"))
  }

  test("a common table over a plain stream is read anywhere in the query") {
    val counts = "WITH c AS (SELECT a, count(*) AS n FROM plain GROUP BY a)"
    for (rest <- Seq(
        "SELECT c.a FROM c JOIN (SELECT max(n) AS n FROM c) m ON c.n = m.n",
        "SELECT a FROM c WHERE n = (SELECT max(n) FROM c)",
        "SELECT a FROM c WHERE n IN (SELECT max(n) FROM c)")) {
      val stream = new RawStream(spark, "plain", "a INT")
      val changes = spark.sql(s"SELECT * FROM to_changelog(TABLE($counts $rest))")
      val running = new RunningChanges(changes, QuickFileSystem.temporaryDirectory())
      try {
        stream.add("1", "1", "2")
        assert(running.next() == Seq("1 insert"))
        stream.add("2", "2")
        assert(running.next() == Seq("1 delete", "2 insert"))
      } finally running.stop()
    }
  }

  test("over a batch query every row is an insert, in all modes") {
    val query = "TABLE(SELECT id % 2 AS k, count(*) AS c FROM range(5) GROUP BY 1)"
    Seq("'retract'", "'upsert', 'k'", "'append'").foreach { mode =>
      val rows = spark.sql(s"SELECT * FROM to_changelog($query, $mode)")
      assert(!rows.isStreaming)
      assert(rows.collect().map(TextChangelog.format).toSet == Set("0 3 insert", "1 2 insert"))
    }
  }

  private def parse(feed: Feed, changes: String*): Seq[Change] =
    changes.map(TextChangelog.parse(_, feed.schema))
}
