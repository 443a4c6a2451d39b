// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.plans.RowTtl
import org.apache.spark.sql.changelog.testing._

class ResolveRowTtlSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private lazy val orders = new RawStream(spark, "orders", "op STRING, k INT, amount INT")

  private def changes(sql: String): DataFrame = {
    orders.reset()
    spark
      .sql(s"SELECT * FROM from_changelog(TABLE(orders), change_type => 'op')")
      .createOrReplaceTempView("o")
    spark.sql(s"SELECT * FROM to_changelog(TABLE($sql))")
  }

  private def hints(plan: LogicalPlan): Seq[Long] = plan.collect { case hint: RowTtl => hint.ttl }

  test("a length stands in Spark's own grammar, and on a data frame") {
    def isHinted(frame: DataFrame): Boolean =
      hints(frame.queryExecution.analyzed) == Seq(60000L)
    assert(isHinted(changes("SELECT /*+ ROW_TTL(o, '1 minute') */ k FROM o")))
    assert(isHinted(changes("SELECT /*+ row_ttl(o, '60s') */ k FROM o")))
    spark.table("o").hint("row_ttl", "1 minute").createOrReplaceTempView("hinted")
    assert(isHinted(changes("SELECT k FROM hinted")))
    spark.table("o").alias("o").hint("row_ttl", "o", "60s").createOrReplaceTempView("hinted")
    assert(isHinted(changes("SELECT k FROM hinted")))
  }

  test("what is wrong with a hint is said, below to_changelog") {
    def refuses(hint: String, argument: String, value: String)(sql: String): Unit = {
      checkError(
        "CHANGELOG_ARGUMENT_INVALID",
        "function" -> "the hint ROW_TTL",
        "argument" -> argument,
        "value" -> value)(changes(sql.replace("HINT", s"/*+ $hint */")))
      ()
    }
    val counts = "SELECT HINT count(*) AS c FROM o"
    refuses("ROW_TTL(x, '1d')", "name", "'x'")(counts)
    refuses("ROW_TTL(o, 'soon')", "length", "'soon'")(counts)
    refuses("ROW_TTL(o, '0')", "length", "'0'")(counts)
    refuses("ROW_TTL('o', '-1s')", "length", "'-1s'")(counts)
    refuses("ROW_TTL(o, '1 month')", "length", "'1 month'")(counts)
    refuses("ROW_TTL(o, '1d', p)", "parameters", "(o, '1d', p)")(counts)
    refuses("ROW_TTL", "parameters", "()")(counts)
    refuses("ROW_TTL(orders, '1d')", "place", "a stream")(
      "SELECT k FROM from_changelog(TABLE(SELECT HINT * FROM orders), change_type => 'op')")
  }

  test("elsewhere a hint means nothing, right or wrong") {
    spark.range(3).createOrReplaceTempView("numbers")
    def plan(hint: String): LogicalPlan = spark
      .sql(s"SELECT $hint id, (SELECT $hint max(id) FROM numbers) AS m FROM numbers WHERE id > 0")
      .queryExecution
      .optimizedPlan
    for (hint <- Seq("ROW_TTL(numbers, '1d')", "ROW_TTL('x', 'y')")) {
      val hinted = plan(s"/*+ $hint */")
      assert(hints(hinted).isEmpty)
      assert(hinted.canonicalized == plan("").canonicalized)
    }
    val frame = spark.table("numbers").hint("row_ttl", "1d")
    assert(hints(frame.queryExecution.optimizedPlan).isEmpty)
    assert(frame.count() == 3)
  }
}
