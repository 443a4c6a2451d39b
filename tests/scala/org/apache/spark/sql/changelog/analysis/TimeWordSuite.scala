// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.functions.expr

import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, InferenceTest}

class TimeWordSuite extends InferenceTest {
  private val columns = "id INT, at TIMESTAMP, d DATE"

  /** The conditions on the time, as EXPLAIN shows them. */
  private def conditions(root: AnnotatedPlan): String =
    find(root, "ChangelogTemporalFilter").plan.expressions.mkString(" AND ")

  test("words for times are the current time, wherever a text has them") {
    changelog("t", columns, All)
    spark.sql("CREATE TEMPORARY FUNCTION last_midnight() RETURNS DATE RETURN DATE 'yesterday'")
    spark.sql("CREATE TEMPORARY VIEW recent AS SELECT * FROM t WHERE d > DATE 'yesterday'")
    Seq(
      "d > DATE 'yesterday'",
      "d > date ' Yesterday '",
      "d > DATE'yesterday UTC'",
      "d > DATE \"yesterday\"",
      "d > DATE r'yesterday'",
      "d > DATE /* 'today' */ -- 'now'\n 'yesterday'",
      "'😀😀😀' <> 'DATE' AND d > DATE 'yesterday'",
      "d > CAST('yesterday' AS DATE)",
      "d > 'yesterday'",
      "d > last_midnight()",
      "id IN (SELECT id FROM recent)").foreach { condition =>
      withClue(condition) {
        val shown = conditions(infer(s"SELECT * FROM t WHERE $condition"))
        assert(shown.replaceAll("#\\d+", "").contains("(d > date_sub(current_date("))
      }
    }
    val named = spark.sql(
      "SELECT * FROM t WHERE id > :least AND d > DATE 'yesterday' AND id < :most",
      Map("least" -> 1, "most" -> 123456789))
    val called = spark.table("t").where(expr("d > DATE 'yesterday'"))
    Seq(named, called).foreach { query =>
      assert(conditions(inferPlan(query.queryExecution.analyzed)).contains("current_date("))
    }
  }

  test("of each type") {
    changelog("t", s"$columns, local TIMESTAMP_NTZ", All)
    Seq(
      "at > TIMESTAMP 'now'" -> "current_timestamp()",
      "at > TIMESTAMP_LTZ 'now'" -> "current_timestamp()",
      "at > TIMESTAMP 'today'" -> "cast(current_date(",
      "local > TIMESTAMP_NTZ 'now'" -> "localtimestamp(",
      "local > TIMESTAMP_NTZ 'tomorrow'" -> "cast(date_add(current_date(",
      "d <= DATE 'now'" -> "current_date(").foreach { case (condition, time) =>
      withClue(condition) {
        assert(conditions(infer(s"SELECT * FROM t WHERE $condition")).contains(time))
      }
    }
  }

  test("other uses of them are refused, constant rows among them") {
    changelog("t", columns, All)
    Seq(
      "SELECT id, DATE 'today' AS d FROM t",
      "SELECT id, count(*) FILTER (WHERE d < DATE 'today') FROM t GROUP BY id",
      "SELECT t.id FROM t JOIN VALUES (1, DATE '2024-02-29'), (2, DATE 'today') AS v(id, d) ON t.d = v.d",
      "SELECT t.id FROM t JOIN VALUES (1, current_date()) AS v(id, d) ON t.d = v.d",
      "SELECT id FROM t WHERE d IN (SELECT * FROM VALUES (DATE 'yesterday'))").foreach { sql =>
      withClue(sql)(checkRefused("CHANGELOG_PASSING_TIME", Map.empty)(infer(sql)))
    }
  }

  test("what only looks like them is left alone") {
    changelog("t", columns, All)
    Seq(
      "d > DATE '2024-02-29'",
      "d > DATE 'epoch'",
      "at > TIMESTAMP 'epoch'",
      "d > DATE '2024-02-29' AND 'DATE ''today''' <> ''",
      "d IN (SELECT * FROM VALUES (DATE '2024-02-29'))",
      "CAST(id AS STRING) = 'now'").foreach { condition =>
      withClue(condition)(infer(s"SELECT * FROM t WHERE $condition"))
    }
    // in batch they are Spark's
    val batch = spark.sql("SELECT DATE 'today'").queryExecution.analyzed
    assert(batch.expressions.exists(_.exists(_.isInstanceOf[Literal])))
  }
}
