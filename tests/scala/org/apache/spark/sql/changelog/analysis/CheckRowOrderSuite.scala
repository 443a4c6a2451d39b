// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.plans.ChangelogOutput
import org.apache.spark.sql.changelog.testing._

/** What depends on the order in which rows are read, which a stream has not. */
class CheckRowOrderSuite extends AnyFunSuite with RefusedChanges {

  test("first and last are refused, over rows that change and over those that only come") {
    views()
    Seq(
      ("SELECT g, first(v) FROM t GROUP BY g", "first", "min_by(v, t)"),
      ("SELECT g, last(v) FROM events GROUP BY g", "last", "max_by(v, t)"),
      ("SELECT g, last_value(v) IGNORE NULLS FROM t GROUP BY g", "last", "max_by(v, t)"),
      ("SELECT first(v) + 1 FROM t HAVING count(*) > 1", "first", "min_by(v, t)"),
      ("SELECT id FROM t WHERE v = (SELECT last(v) FROM t)", "last", "max_by(v, t)"),
      ("SELECT id, last_value(v) OVER (PARTITION BY g) FROM t", "last_value", "max_by(v, t)"),
      ("SELECT g, last(v) FROM (SELECT * FROM t ORDER BY id) GROUP BY g", "last", "max_by(v, t)"))
      .foreach { case (sql, function, ordered) =>
        withClue(sql) {
          val condition = "CHANGELOG_ROW_ORDER_UNKNOWN"
          checkError(condition, "function" -> function, "ordered" -> ordered)(changes(sql))
          checkError(condition)(spark.sql(s"EXPLAIN CHANGELOG $sql").collect())
        }
      }
  }

  test("what any row answers, or an order, is accepted") {
    views()
    Seq(
      "SELECT g, any_value(v), max_by(v, id), min_by(v, id) FROM t GROUP BY g",
      "SELECT g, any_value(v, true) FROM events GROUP BY g",
      "SELECT g, first(g), last(upper(g)), first(1) FROM t GROUP BY g",
      "SELECT id, first_value(v) OVER (PARTITION BY g ORDER BY id) FROM t",
      "SELECT id, first_value(g) OVER (PARTITION BY g) FROM t",
      "SELECT t.id, f.v FROM t JOIN (SELECT g, first(v) AS v FROM fixed GROUP BY g) f ON t.g = f.g")
      .foreach(sql => withClue(sql)(assert(changes(sql).columns.last == "_change_type")))
  }

  test("first and last take the order of a sequence") {
    val feed = new RawStream(spark, "raw", "op STRING, id INT, g STRING, v INT, at INT")
    spark
      .sql(
        "SELECT * FROM from_changelog(TABLE(raw), 'op', 'id', input => 'upsert', sequence_by => 'at')")
      .createOrReplaceTempView("t")
    val functions =
      "first(v), last(v), first_value(v) IGNORE NULLS, last(v, true) FILTER (WHERE v < 9)"
    val query = s"SELECT g, $functions FROM t WHERE at > 0 GROUP BY g"
    val running = new RunningChanges(changes(query), QuickFileSystem.temporaryDirectory())
    def check(rows: String*): Unit = {
      running.next()
      assert(FoldedChanges(running.all) == rows)
    }
    try {
      // the second row came first
      feed.add("insert 1 a 3 20", "insert 2 a NULL 10", "insert 3 b 5 30", "insert 4 a 9 40")
      check("a NULL 9 3 3", "b 5 5 5 5")
      feed.add("insert 2 a 7 50", "delete 3 b 5 60")
      check("a 3 7 3 7")
      feed.add("delete 1 a 3 70", "insert 5 a 1 5")
      check("a 1 7 1 7")
    } finally running.stop()
    // of a projection without the sequence, of two sources, and of a window without an order
    Seq(
      "SELECT g, first(v) FROM (SELECT g, v FROM t) GROUP BY g",
      "SELECT a.g, first(a.v) FROM t a JOIN t b ON a.id = b.id GROUP BY a.g",
      "SELECT id, first_value(v) OVER (PARTITION BY g) FROM t").foreach { sql =>
      checkError("CHANGELOG_ROW_ORDER_UNKNOWN")(changes(sql))
    }
  }

  test("duplicates are dropped whichever is the first") {
    views()
    spark.table("t").dropDuplicates("g").createOrReplaceTempView("once")
    val planned = spark.sessionState.optimizer.execute(
      LowerSources(changes("SELECT * FROM once").queryExecution.analyzed))
    assert(planned.exists(_.isInstanceOf[ChangelogOutput]), planned)
  }

  test("a batch query takes rows as it reads them") {
    views()
    assert(changes("SELECT g, first(v) FROM fixed GROUP BY g").head().getInt(1) == 1)
  }

  test("pivot needs values, which a stream has not yet") {
    views()
    checkError("CHANGELOG_PIVOT_WITHOUT_VALUES", "column" -> "g") {
      spark.table("t").groupBy("id").pivot("g").sum("v")
    }
    spark.table("t").groupBy("id").pivot("g", Seq("a")).sum("v")
    spark.table("t").select("g").distinct().limit(3).sort("g")
  }
}
