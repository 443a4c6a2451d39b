// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper

import org.apache.spark.sql.changelog.testing._

/** DISTINCT functions: what is kept, and where. */
class ChangelogDistinctSuite extends AnyFunSuite with ChangelogSession {
  private val split = "spark.sql.changelog.aggregate.distinctSplit.enabled"

  private class Running(functions: String, change: Boolean = true) {
    private val checkpoint = QuickFileSystem.temporaryDirectory()
    private val stream = new RawStream(spark, "raw", "op STRING, g STRING, a INT, b INT")
    private val table = if (change) "TABLE(raw), 'op'" else "TABLE(SELECT * EXCEPT (op) FROM raw)"
    private def start() = new RunningChanges(
      spark.sql(s"""SELECT * FROM to_changelog(TABLE(
           |WITH t AS (SELECT * FROM from_changelog($table))
           |SELECT g, $functions FROM t GROUP BY g))""".stripMargin),
      checkpoint)
    private var running = start()

    def next(rows: String*): Seq[String] = {
      stream.add(rows: _*)
      running.next()
    }

    def restart(): Unit = {
      running.stop()
      running = start()
    }

    def stop(): Unit = running.stop()

    def plan: SparkPlan =
      running.query.asInstanceOf[StreamingQueryWrapper].streamingQuery.lastExecution.executedPlan

    /** Entries of the values' operator, the first of the query, as text. */
    def values: Seq[String] = spark.read
      .format("statestore")
      .option("operatorId", "0")
      .load(checkpoint.getPath)
      .selectExpr("to_json(key) AS key", "to_json(value) AS value")
      .collect()
      .map(row => s"${row.getString(0)} ${row.getString(1)}")
      .sorted
      .toSeq
  }

  private def running(functions: String, change: Boolean = true)(body: Running => Unit): Unit = {
    val query = new Running(functions, change)
    try body(query)
    finally query.stop()
  }

  test("a group's values are kept with their counts, and go with their last row") {
    running("count(DISTINCT a), sum(DISTINCT a)") { query =>
      query.next("insert x 1 1", "insert x 1 2", "insert x 2 1", "insert y NULL 1")
      assert(
        query.values ==
          Seq("""{"g":"x","a":1} {"count":2}""", """{"g":"x","a":2} {"count":1}"""))
      assert(
        query.next("delete x 1 1", "delete x 2 1") == Seq(
          "x 1 1 update_postimage",
          "x 2 3 update_preimage"))
      assert(query.values == Seq("""{"g":"x","a":1} {"count":1}"""))
      assert(
        query.next("delete x 1 2", "delete y NULL 1") == Seq("x 1 1 delete", "y 0 NULL delete"))
      assert(query.values == Nil)
    }
  }

  test("functions of one argument share its values, others have their own") {
    running(
      "count(DISTINCT a), avg(DISTINCT a), count(DISTINCT a) FILTER (WHERE b > 1), count(DISTINCT b)") {
      query =>
        query.next("insert x 1 1", "insert x 1 2")
        // a; a where b > 1; both values of b
        assert(query.values.size == 4, query.values)
    }
  }

  test("over input that only inserts a value is written once") {
    running("count(DISTINCT a)", change = false) { query =>
      assert(query.next("insert x 1 1", "insert x 2 2") == Seq("x 2 insert"))
      assert(query.next("insert x 1 1", "insert x 1 2") == Nil)
      assert(query.values.forall(_.endsWith("""{"count":1}""")))
    }
  }

  test("over input that only inserts, functions that differ in their FILTER share entries") {
    val combining = "spark.sql.changelog.aggregate.combineValues"
    for (combines <- Seq("always", "never")) {
      spark.conf.set(combining, combines)
      try
        running(
          "count(DISTINCT a) AS n, count(DISTINCT CASE WHEN b > 1 THEN a END) AS m, " +
            "count(DISTINCT if(b < 3, a, NULL)) + count(DISTINCT a) FILTER (WHERE b > 9) AS l, " +
            "count(DISTINCT coalesce(b, 0)) AS k",
          change = false) { query =>
          assert(query.next("insert x 1 1") == Seq("x 1 0 1 1 insert"))
          assert(query.next("insert x 1 1") == Nil)
          assert(
            query.next("insert x 1 2", "insert x 2 3") == Seq(
              "x 1 0 1 1 update_preimage",
              "x 2 2 1 3 update_postimage"))
          query.restart()
          assert(query.next("insert x 2 2", "insert y NULL 2").last == "y 0 0 0 1 insert")
          assert(
            query.values == Seq(
              entry(table = 1, "x", value = 1, kinds = 1 + 2 + 4),
              entry(table = 1, "x", value = 2, kinds = 1 + 2 + 4),
              entry(table = 5, "x", value = 1, kinds = 1),
              entry(table = 5, "x", value = 2, kinds = 1),
              entry(table = 5, "x", value = 3, kinds = 1),
              entry(table = 5, "y", value = 2, kinds = 1)))
        }
      finally spark.conf.unset(combining)
    }
  }

  private def entry(table: Int, group: String, value: Int, kinds: Int): String =
    s"""{"table":$table,"g":"$group","value":$value} {"count":$kinds}"""

  private def exchanges(plan: SparkPlan): Seq[String] = plan.collect {
    case exchange: ShuffleExchangeExec =>
      exchange.outputPartitioning.toString.replaceAll("#\\d+", "")
  }

  test("split, values are spread by group and value; otherwise there is one exchange") {
    running("count(DISTINCT a), count(*)") { query =>
      query.next("insert x 1 1")
      assert(exchanges(query.plan) == Seq("hashpartitioning(g, 2)"))
    }
    spark.conf.set(split, "true")
    try
      running("count(DISTINCT a), count(*)") { query =>
        assert(query.next("insert x 1 1", "insert x 2 1") == Seq("x 2 2 insert"))
        assert(
          exchanges(query.plan) ==
            Seq("hashpartitioning(g, 2)", "hashpartitioning(g, table, a, 2)"))
        query.restart()
        assert(query.next("insert x 2 1", "delete x 1 1").size == 2)
        spark.conf.set(split, "false")
        query.restart()
        // it goes on as it began
        assert(query.next("insert x 3 1").size == 2)
        assert(exchanges(query.plan).size == 2)
      }
    finally spark.conf.unset(split)
  }

  test("texts that a collation finds equal are one value") {
    for (change <- Seq(false, true)) {
      val counted = "count(DISTINCT if(a < 3, 'x', 'X') COLLATE UTF8_LCASE, b) AS c"
      running(counted, change) { query =>
        assert(query.next("+I g 1 1", "+I g 5 1", "+I g 2 2") == Seq("g 2 insert"))
        assert(query.values.size == 2)
        assert(query.next("+I g 9 3") == Seq("g 2 update_preimage", "g 3 update_postimage"))
        assert(query.values.size == 3)
        if (change) {
          assert(query.next("-D g 1 1") == Nil)
          assert(query.next("-D g 5 1") == Seq("g 2 update_postimage", "g 3 update_preimage"))
        }
      }
    }
  }

  test("a list of texts that a collation finds distinct is kept by values where rows only come") {
    val word = "if(a < 3, concat('x', b), concat('X', b)) COLLATE UTF8_LCASE"
    val lists =
      s"lower(listagg(DISTINCT $word, ' ' COLLATE UTF8_LCASE) WITHIN GROUP (ORDER BY $word)) AS w, " +
        s"array_join(array_sort(transform(collect_list(DISTINCT array($word)), " +
        "x -> lower(x[0]))), ',') AS l, sum(b) AS t"
    for (split <- Seq(false, true)) {
      spark.conf.set(this.split, split)
      try
        running(lists, change = false) { query =>
          assert(query.next("+I g 1 1", "+I g 5 1", "+I g 2 2") == Seq("g x1 x2 x1,x2 4 insert"))
          assert(query.values.size == 4)
          query.restart()
          assert(
            query.next("+I g 9 2", "+I g 9 3") == Seq(
              "g x1 x2 x1,x2 4 update_preimage",
              "g x1 x2 x3 x1,x2,x3 9 update_postimage"))
          assert(query.values.size == 6)
        }
      finally spark.conf.unset(this.split)
    }
  }
}
