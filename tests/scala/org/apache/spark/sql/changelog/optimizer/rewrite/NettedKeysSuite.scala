// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.Row
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream

import org.apache.spark.sql.changelog.plans.{ChangelogConsolidate, ChangelogJoin}
import org.apache.spark.sql.changelog.testing._

/** Which joins leave one change per key, so that nothing above must net them. */
class NettedKeysSuite extends AnyFunSuite with ChangelogSession {
  private lazy val oracle = new Oracle(spark)
  private val left = Feed("l", "a INT, b INT", Seq("a"))
  private val right = Feed("r", "c INT, d INT", Seq("c"))
  private val bag = Feed("s", "e INT, f INT")

  private def isNetted(sql: String, mode: String = "retract", key: String = ""): Boolean = {
    Seq(left, right, bag).foreach { feed =>
      val encoder = Encoders.row(feed.schema.add("op", "string"))
      val raw = s"${feed.name}_raw"
      MemoryStream[Row](encoder, spark.sqlContext).toDF().createOrReplaceTempView(raw)
      spark.sql(feed.read(raw, "op")).createOrReplaceTempView(feed.name)
    }
    val query = spark.sql(s"SELECT * FROM to_changelog(TABLE($sql), mode => '$mode'$key)")
    val plan = spark.sessionState.optimizer.execute(query.queryExecution.analyzed)
    assert(plan.exists(_.isInstanceOf[ChangelogJoin]), plan)
    plan.exists(_.isInstanceOf[ChangelogConsolidate])
  }

  test("a join of one row with one is not netted again") {
    assert(!isNetted("SELECT a, b, d FROM l JOIN r ON a = c"))
    assert(!isNetted("SELECT a, b, c, d FROM l FULL JOIN r ON a = c"))
    assert(!isNetted("SELECT a + 1 AS n, a, b FROM l LEFT SEMI JOIN r ON a = c WHERE b > 1"))
    assert(!isNetted("SELECT a, b FROM l LEFT ANTI JOIN r ON a = c AND b < d"))
    assert(!isNetted("SELECT a, b, d FROM l JOIN r ON a = c", "upsert", ", key => array('a')"))
    assert(
      !isNetted("SELECT e, n, b FROM (SELECT e, count(*) n FROM s GROUP BY e) JOIN l ON e = a"))
  }

  test("where a row of another key, or without one, may bring the same change, it is netted") {
    // the keys of a side without a match are NULL, in a left join of one column
    assert(isNetted("SELECT a, b, d FROM l LEFT JOIN r ON a = c"))
    // several rows of a join key, which may be joined some at a time
    assert(isNetted("SELECT a, b, d FROM l JOIN r ON b = c"))
    assert(isNetted("SELECT a, b, f FROM l JOIN s ON a = e"))
    // a group may be NULL, and matches nothing
    val groups = "(SELECT e, count(*) n FROM s GROUP BY e)"
    assert(isNetted(s"SELECT e, n, a, b FROM $groups FULL JOIN l ON e = a"))
    // the key does not hold the join key
    assert(isNetted("SELECT a, b, d FROM l JOIN r ON a = c AND b = d"))
    // it is read by another key
    assert(
      isNetted("SELECT a, b, d FROM l JOIN r ON a = c", "upsert", ", key => array('a', 'b')"))
  }

  private val steps = Seq(
    Seq(Step(left, "+I 1 1", "+I 2 2", "+I 3 3", "+I 4 4"), Step(right, "+I 1 9", "+I 5 1")),
    Seq(Step(left, "-U 1 1", "+U 1 2", "-D 3 3"), Step(right, "-D 1 9", "+I 3 7", "+I 2 2")),
    Seq(Step(left, "-D 1 2", "+I 1 1", "+I 5 5"), Step(right, "-D 2 2", "+I 2 3", "-D 5 1")),
    Seq(Step(left, "-D 5 5", "-U 2 2", "+U 2 1"), Step(right, "+I 1 1", "-U 2 3", "+U 2 0")))
    .map(both => Step(both.flatMap(_.changes).toMap))

  for (join <- Seq("JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
    for (condition <- Seq("a = c", "a = c AND b < d")) {
      test(s"the changes of a $join on $condition are net as they come") {
        val columns = if (join.contains("SEMI") || join.contains("ANTI")) "a, b" else "a, b, c, d"
        val program =
          Program(Seq(left, right), s"SELECT $columns FROM l $join r ON $condition", steps)
        oracle.check(program)
        if (join == "JOIN") oracle.check(program, Variant("upsert", Seq("a")))
      }
    }
}
