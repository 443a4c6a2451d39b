// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** Wide views with long comments and conditions, through each statement that reads their query. */
class WideViewSuite extends AnyFunSuite with ViewSession {
  private val text = "it''s a -- `long` comment; " * 70
  private val lines = "-- one of many lines\n" * 5000
  private val wide = (1 to 120).map(number => s"k * $number AS c$number").mkString(", ")

  /** Each query, with what stands before it in CREATE. */
  private val views = Seq(
    "120 columns" -> ("", s"SELECT id, $wide FROM t"),
    "120 columns with comments" -> (
      (1 to 120).map(number => s"c$number INT COMMENT '$text'").mkString("(id INT, ", ", ", ")"),
      s"SELECT id, $wide FROM t"),
    "200 conditions" -> (
      "",
      s"SELECT id FROM t WHERE ${(1 to 200).map(number => s"k <> -$number").mkString(" AND ")}"))

  for {
    (name, (clauses, query)) <- views
    format <- Share.ofWays(Seq("delta", "parquet"), name)
  } test(s"$name, in $format") {
    def check(query: String): Unit = {
      assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
      assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
    }
    run("CREATE TABLE t (id INT, k INT) USING delta")
    try {
      run("INSERT INTO t VALUES (1, 1), (2, 2), (3, 2)")
      run(s"CREATE TABLE plain USING delta AS $query")
      run(s"${lines}CREATE MATERIALIZED VIEW v $clauses USING $format AS $query")
      check(query)
      Seq("INSERT INTO t VALUES (4, 2)", "DELETE FROM t WHERE id = 2").foreach { change =>
        run(change)
        run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
        check(query)
      }
      val other = s"SELECT *, 1 AS added FROM ($query\n)"
      run(s"ALTER MATERIALIZED VIEW v AS $other")
      check(other)
      run("INSERT INTO t VALUES (5, 3)")
      run("REFRESH MATERIALIZED VIEW v")
      check(other)
    } finally {
      run("DROP MATERIALIZED VIEW IF EXISTS v")
      Seq("plain", "t").foreach(table => run(s"DROP TABLE IF EXISTS $table"))
    }
  }
}
