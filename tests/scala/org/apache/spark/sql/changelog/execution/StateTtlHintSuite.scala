// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}

import org.apache.spark.sql.changelog.plans.{ChangelogJoin, RowTtl, StateTtl}
import org.apache.spark.sql.changelog.testing._

/** State that a hint says the age of: per operator, and per side of a join. */
class StateTtlHintSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private lazy val orders = new RawStream(spark, "orders", "op STRING, k INT, amount INT")
  private lazy val people = new RawStream(spark, "people", "op STRING, k INT, name STRING")

  private def tables(): Unit = {
    orders.reset()
    people.reset()
    for ((raw, table) <- Seq("orders" -> "o", "people" -> "p")) {
      spark
        .sql(s"SELECT * FROM from_changelog(TABLE($raw), change_type => 'op')")
        .createOrReplaceTempView(table)
    }
  }

  private def changes(sql: String, mode: String = "retract"): DataFrame =
    spark.sql(s"SELECT * FROM to_changelog(TABLE($sql), mode => '$mode')")

  private def running(changes: => DataFrame, conf: Map[String, String] = Map.empty)(
      body: RunningChanges => Unit): Unit = {
    tables()
    conf.foreach { case (key, value) => spark.conf.set(key, value) }
    val query = new RunningChanges(changes, QuickFileSystem.temporaryDirectory())
    try body(query)
    finally {
      query.stop()
      conf.keys.foreach(spark.conf.unset)
    }
  }

  /** How many rows each operator forgot in the last batch, the first operator first. */
  private def expired(query: RunningChanges): Seq[Long] = query.progress.stateOperators.toSeq
    .map(_.customMetrics.asScala("numExpiredStateRows").toLong)

  private def explained(sql: String): String =
    spark.sql(s"EXPLAIN CHANGELOG $sql").head().getString(0)

  /** The query per person over a join, with a hint. */
  private def totals(hint: String): String =
    s"""SELECT name, sum(amount) AS total FROM (
       |  SELECT $hint o.amount, p.name FROM o JOIN p ON o.k = p.k)
       |GROUP BY name""".stripMargin

  private def forgetsOrders(query: RunningChanges): Unit = {
    people.add("insert 1 ann")
    orders.add("insert 1 10")
    assert(query.next() == Seq("ann 10 insert"))
    query.pass(20)
    // the order is forgotten, the person is not, and nor is the total
    orders.add("insert 1 5")
    assert(query.next() == Seq("ann 10 update_preimage", "ann 15 update_postimage"))
    assert(expired(query) == Seq(0, 1), "by the aggregate, and by the join")
    query.pass(20)
    people.add("insert 1 bob")
    assert(query.next() == Nil)
  }

  for ((provider, conf) <- Seq(
      "in memory" -> Map.empty[String, String],
      "RocksDB" -> Variant.RocksDB)) {
    test(s"one side of a join is forgotten, all else is kept, $provider") {
      running(changes(totals("/*+ STATE_TTL(o, '1ms') */")), conf)(forgetsOrders)
    }
  }

  test("a hint in Spark's own grammar, of several names, and on a data frame") {
    running(changes(totals("/*+ STATE_TTL(o, '1 millisecond', p, '1 day') */")))(forgetsOrders)
    running {
      val (o, p) = (spark.table("o"), spark.table("p"))
      o.hint("state_ttl", "1ms").join(p, "k").createOrReplaceTempView("joined")
      changes("SELECT name, sum(amount) AS total FROM joined GROUP BY name")
    }(forgetsOrders)
    running {
      val (o, p) = (spark.table("o").alias("o"), spark.table("p").alias("p"))
      o.join(p, "k").hint("state_ttl", "o", "1ms").createOrReplaceTempView("joined")
      changes("SELECT name, sum(amount) AS total FROM joined GROUP BY name")
    }(forgetsOrders)
  }

  test("what the session says of all else does not concern what a hint names") {
    val ttl = Map("spark.sql.changelog.state.ttl" -> "1ms")
    running(changes("SELECT /*+ STATE_TTL(o, '0') */ k, count(*) AS c FROM o GROUP BY k"), ttl) {
      query =>
        orders.add("insert 1 10")
        assert(query.next() == Seq("1 1 insert"))
        query.pass(20)
        orders.add("insert 1 20")
        assert(query.next() == Seq("1 1 update_preimage", "1 2 update_postimage"))
    }
  }

  /** A query over `o` that starts anew when its state is forgotten. */
  private def forgets(sql: String, first: String, anew: String): Unit =
    running(changes(sql)) { query =>
      orders.add("insert 1 10")
      assert(query.next() == Seq(first))
      query.pass(20)
      orders.add("insert 1 20")
      assert(query.next() == Seq(anew))
    }

  test("an aggregate, a rank, a window function and distinct values are forgotten too") {
    val hint = "/*+ STATE_TTL(o, '1ms') */"
    forgets(s"SELECT $hint k, count(*) AS c FROM o GROUP BY k", "1 1 insert", "1 1 insert")
    forgets(
      s"SELECT $hint upper(CAST(k AS STRING)) AS k, median(amount) AS m FROM o GROUP BY 1",
      "1 10.0 insert",
      "1 20.0 insert")
    forgets(
      s"SELECT $hint k, count(DISTINCT amount) AS c FROM o WHERE amount > 1 GROUP BY k",
      "1 1 insert",
      "1 1 insert")
    forgets(
      s"SELECT k, amount FROM (SELECT $hint *, row_number() OVER (PARTITION BY k ORDER BY amount)" +
        " AS r FROM o) WHERE r = 1",
      "1 10 insert",
      "1 20 insert")
    forgets(
      s"SELECT $hint amount, sum(amount) OVER (PARTITION BY k) AS s FROM o",
      "10 10 insert",
      "20 20 insert")
    forgets(
      s"SELECT $hint k, count(*) AS c FROM o GROUP BY k HAVING EXISTS (SELECT 1)",
      "1 1 insert",
      "1 1 insert")
  }

  test("common tables and subqueries take hints") {
    tables()
    val text = explained(
      s"""SELECT * FROM (WITH c AS (SELECT /*+ STATE_TTL(o, '2h') */ k, count(*) AS n FROM o GROUP BY k)
         |SELECT /*+ STATE_TTL(c, '3h', p, '4h') */ * FROM c LEFT JOIN p ON c.k = p.k
         |WHERE EXISTS (SELECT /*+ STATE_TTL(x, '5h') */ 1 FROM o AS x WHERE x.k = c.n))""".stripMargin)
    for ((table, hours) <- Seq(
        "groups: (k) → buffers" -> 2,
        "left rows: (k) → row" -> 3,
        // by EXISTS, which Spark pushes below the join
        "left rows: (n, k) → row" -> 3,
        "right rows: (k, row) → count" -> 4,
        "right counts: (CAST(k AS BIGINT)) → count" -> 5)) {
      assert(text.contains(s"$table, forgotten $hours.00 h after its last change"), text)
    }
    assert("forgotten".r.findAllIn(text).size == 5, text)
  }

  test("EXPLAIN shows what a hint says, per side and per operator") {
    tables()
    val text = explained(totals("/*+ STATE_TTL(o, '3d') */"))
    assert(
      text.contains(
        "state: left rows: (k, row) → count, forgotten 72.00 h after its last change; " +
          "right rows: (k, row) → count, unbounded"),
      text)
    assert(text.contains("groups: (name) → buffers, unbounded"), text)
  }

  test("filters and projections are pushed down through a hint") {
    tables()
    def optimized(hint: String): LogicalPlan = spark.sessionState.optimizer.execute(
      changes(s"SELECT $hint o.k, count(*) AS c FROM o JOIN p ON o.k = p.k " +
        "WHERE o.amount > 5 AND p.name = 'ann' GROUP BY o.k").queryExecution.analyzed)
    def shape(plan: LogicalPlan): String =
      plan.toString.replaceAll("#\\d+L?", "").replaceAll("Some\\(\\d{8,}\\)", "None")
    val hinted = optimized("/*+ STATE_TTL(o, '1d', p, '2d') */")
    val filters = hinted.collect { case join: ChangelogJoin => join }.head.collect {
      case filter: Filter => filter
    }
    assert(filters.nonEmpty)
    assert(shape(hinted) == shape(optimized("")))
  }

  test("what is wrong with a hint is said, below to_changelog") {
    tables()
    def refuses(hint: String, argument: String, value: String): Unit = {
      checkError(
        "CHANGELOG_ARGUMENT_INVALID",
        "function" -> "the hint STATE_TTL",
        "argument" -> argument,
        "value" -> value)(changes(s"SELECT /*+ $hint */ count(*) AS c FROM o"))
      ()
    }
    refuses("STATE_TTL(x, '1d')", "name", "'x'")
    refuses("STATE_TTL(o, 'soon')", "length", "'soon'")
    refuses("STATE_TTL(o, '2 months')", "length", "'2 months'")
    refuses("STATE_TTL('o', '-1s')", "length", "'-1s'")
    refuses("STATE_TTL(o, '1d', p)", "parameters", "(o, '1d', p)")
    refuses("STATE_TTL", "parameters", "()")
  }

  test("a hint ROW_TTL is written as STATE_TTL is, and for tables only") {
    tables()
    def isLeaving(frame: DataFrame): Boolean =
      frame.queryExecution.analyzed.collectFirst { case RowTtl(ttl, _) => ttl }.contains(60000L)
    assert(isLeaving(changes("SELECT /*+ ROW_TTL(o, '1 minute') */ k FROM o")))
    assert(isLeaving(changes("SELECT /*+ row_ttl(o, '60s') */ k FROM o")))
    spark.table("o").hint("row_ttl", "1 minute").createOrReplaceTempView("hinted")
    assert(isLeaving(changes("SELECT k FROM hinted")))
    def refuses(hint: String, argument: String, value: String)(sql: String): Unit = {
      checkError(
        "CHANGELOG_ARGUMENT_INVALID",
        "function" -> "the hint ROW_TTL",
        "argument" -> argument,
        "value" -> value)(changes(sql.replace("HINT", s"/*+ ROW_TTL($hint) */")))
      ()
    }
    val counts = "SELECT HINT count(*) AS c FROM o"
    refuses("x, '1d'", "name", "'x'")(counts)
    refuses("o, '0'", "length", "'0'")(counts)
    refuses("o, '1 month'", "length", "'1 month'")(counts)
    refuses("orders, '1d'", "place", "a stream")(
      "SELECT k FROM from_changelog(TABLE(SELECT HINT * FROM orders), change_type => 'op')")
    // elsewhere it means nothing
    spark.range(3).createOrReplaceTempView("numbers")
    val rows = spark.sql("SELECT /*+ ROW_TTL(numbers, '1ms') */ id FROM numbers WHERE id > 0")
    assert(rows.count() == 2 && rows.queryExecution.optimizedPlan.collectFirst { case h: RowTtl =>
      h
    }.isEmpty)
  }

  test("elsewhere a hint means nothing, right or wrong") {
    spark.range(3).createOrReplaceTempView("numbers")
    def plan(hint: String): LogicalPlan = spark
      .sql(s"SELECT $hint id, (SELECT $hint max(id) FROM numbers) AS m FROM numbers WHERE id > 0")
      .queryExecution
      .optimizedPlan
    for (hint <- Seq("STATE_TTL(numbers, '1d')", "STATE_TTL('x', 'y')")) {
      val hinted = plan(s"/*+ $hint */")
      assert(!hinted.toString.contains("StateTtl"))
      assert(hinted.canonicalized == plan("").canonicalized)
    }
    val frame = spark.table("numbers").hint("state_ttl", "1d")
    assert(frame.queryExecution.optimizedPlan.collect { case hint: StateTtl => hint }.isEmpty)
    assert(frame.count() == 3)
  }
}
