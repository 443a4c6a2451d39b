// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.times

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.inference.nodes.InferredNode
import org.apache.spark.sql.changelog.inference.times.Direction._
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, InferenceTest}

class MonotonicitySuite extends InferenceTest {

  private def declareTables(): Unit = {
    appends("e", "g STRING, h STRING, v INT")
    changelog("t", "id INT, v INT", InsertUpdate, key = Seq("id"))
    changelog("d", "id INT, v INT", All, key = Seq("id"))
  }

  /** Which way the columns of a query's result move. */
  private def directions(sql: String): Seq[Option[Direction]] = {
    declareTables()
    val node = inferred(infer(sql).children.head)
    node.plan.output.map(column => Monotonicity.directionOf(node, column: Expression))
  }

  private def inferred(node: AnnotatedPlan): InferredNode =
    InferredNode(
      node.plan,
      null,
      node.mode.kinds,
      node.upsertKeys,
      isStatic = false,
      node.children.map(inferred))

  test("new rows never move, changing ones move anywhere but in their key") {
    assert(directions("SELECT * FROM e") == Seq.fill(3)(Some(Constant)))
    assert(directions("SELECT * FROM t") == Seq(Some(Constant), None))
  }

  test("a row that may be deleted may come back with any value") {
    assert(directions("SELECT * FROM d") == Seq(None, None))
  }

  test("counts and maxima grow, minima fall, groups stay") {
    assert(
      directions("SELECT g, upper(g), count(v), max(v), min(v), avg(v) FROM e GROUP BY g") ==
        Seq(Some(Constant), None, Some(Up), Some(Up), Some(Down), None))
  }

  test("a sum moves one way if its summand is kept on one side of zero") {
    def sum(where: String): Option[Direction] =
      directions(s"SELECT g, sum(v) FROM e WHERE $where GROUP BY g").last
    assert(sum("v >= 0").contains(Up) && sum("v > 3").contains(Up))
    assert(sum("v <= 0").contains(Down) && sum("v < -2").contains(Down))
    assert(sum("v > -1").isEmpty && sum("v < 1").isEmpty && sum("true").isEmpty)
    val filtered = "SELECT g, sum(v) FILTER (WHERE v >= 0) FROM e GROUP BY g"
    assert(directions(filtered).last.contains(Up))
  }

  test("a sum that may overflow silently moves anywhere") {
    withSQLConf(SQLConf.ANSI_ENABLED.key -> "false") {
      assert(directions("SELECT g, sum(v) FROM e WHERE v >= 0 GROUP BY g").last.isEmpty)
    }
  }

  test("projections and filters on what stays hand directions on, other filters don't") {
    val counts = "(SELECT g, h, count(*) AS n FROM e GROUP BY g, h)"
    assert(
      directions(s"SELECT n AS m, g AS k FROM $counts WHERE h > g") ==
        Seq(Some(Up), Some(Constant)))
    assert(directions(s"SELECT n FROM $counts WHERE n < 5") == Seq(None))
  }

  test("joins on what stays hand directions on") {
    val counts = "(SELECT g, count(*) AS n FROM e GROUP BY g)"
    assert(
      directions(s"SELECT e.h, c.n FROM e JOIN $counts c ON e.g = c.g") ==
        Seq(Some(Constant), Some(Up)))
    assert(directions(s"SELECT e.h, c.n FROM e JOIN $counts c ON e.v = c.n").last.isEmpty)
  }
}
