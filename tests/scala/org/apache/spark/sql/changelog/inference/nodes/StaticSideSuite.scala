// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.changelog.inference.{DescribeNode, InferenceTest}

class StaticSideSuite extends InferenceTest {

  private def declareTables(): Unit = {
    changelog("orders", "oid INT, cur STRING, amount INT", All, key = Seq("oid"))
    appends("clicks", "cur STRING")
    spark
      .sql("SELECT 'EUR' AS cur, 2 AS rate UNION ALL SELECT 'NOK', 3")
      .createOrReplaceTempView("rates")
  }

  private val on = "ON orders.cur = rates.cur"

  test("what has no stream below it is static, and sends what it has once") {
    declareTables()
    assert(StaticInference.isStatic(spark.table("rates").queryExecution.analyzed))
    assert(!StaticInference.isStatic(table("orders")))
    assert(StaticInference.isStatic(table("orders").copy(streaming = false)))
  }

  test("a join with a static side does what the other side does, and keeps no state") {
    declareTables()
    Seq("JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN").foreach { kind =>
      val node = find(infer(s"SELECT orders.* FROM orders $kind rates $on"), "ChangelogJoin")
      assert(node.mode.toString == "[I,UB,UA,D]" && node.state.isEmpty)
      assert(node.strategy.contains("look up the static side"))
      assert(node.children.last.mode.toString == "[I]")
    }
    val inserts = infer("SELECT * FROM rates RIGHT JOIN clicks ON clicks.cur = rates.cur", Append)
    assert(find(inserts, "ChangelogJoin").mode.toString == "[I]")
  }

  test("nodes of a static side are called by their plain names") {
    declareTables()
    val sums = "(SELECT cur, sum(rate) AS rate FROM rates GROUP BY cur)"
    val root = infer(s"SELECT oid, rate FROM orders JOIN $sums s ON orders.cur = s.cur", Upsert)
    val aggregate = find(root, "Aggregate")
    assert(DescribeNode.short(aggregate.plan) == "Aggregate [cur]")
    assert(aggregate.strategy.contains("static") && keys(aggregate) == "(cur)")
  }

  test(
    "a look-up by another column than the key needs the old row, unless each row comes out once") {
    declareTables()
    val sums = "(SELECT cur, sum(rate) AS rate FROM rates GROUP BY cur)"
    val lookup = s"orders %s JOIN $sums s ON orders.cur = s.cur"
    val inner = infer(s"SELECT oid, rate FROM ${lookup.format("")}", Upsert)
    assert(find(inner, "ChangelogSource").mode.toString == "[I,UB,UA,D]")
    assert(
      find(inner, "ChangelogJoin").reasons.head ==
        "sends -U because ChangelogJoin Inner needs the old row to retract its pairs")
    val outer = infer(s"SELECT oid, rate FROM ${lookup.format("LEFT")}", Upsert)
    assert(find(outer, "ChangelogSource").mode.toString == "[I,UA,D]")
  }

  test("a static side whose rows come out by themselves is kept like a changelog") {
    declareTables()
    def check(sql: String): Unit = {
      val root = infer(sql)
      assert(find(root, "ChangelogJoin").state.nonEmpty, sql)
      assert(find(root, "ChangelogStatic").mode.toString == "[I]", sql)
    }
    Seq("RIGHT JOIN", "FULL JOIN").foreach { kind =>
      check(s"SELECT * FROM orders $kind rates $on")
    }
    Seq("LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN").foreach { kind =>
      check(s"SELECT rates.* FROM rates $kind orders $on")
    }
  }

  test("static rows beside changing ones are inserted in the first batch") {
    declareTables()
    val root = infer("SELECT cur, amount FROM orders UNION ALL SELECT cur, rate FROM rates")
    val static = find(root, "ChangelogStatic")
    assert(static.mode.toString == "[I]" && static.strategy.contains("insert in the first batch"))
    assert(keys(find(infer("SELECT (SELECT max(amount) FROM orders)"), "ChangelogJoin")) == "()")
  }
}
