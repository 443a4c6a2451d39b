// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.AnalysisException

import org.apache.spark.sql.changelog.testing._

/** AUTO CDC outside pipelines, by the examples in the documentation of Databricks. */
class AutoCdcSuite extends AnyFunSuite with ViewSession with ErrorChecks with BeforeAndAfterEach {
  override def beforeEach(): Unit = run(
    "CREATE TABLE users (userId INT, name STRING, city STRING, operation STRING, sequenceNum INT) USING parquet")

  override def afterEach(): Unit = {
    run("DROP MATERIALIZED VIEW IF EXISTS target")
    run("DROP TABLE users")
  }

  /** The events in their order of arrival, in which updates come late. */
  private val events = Seq(
    "(124, 'Raul', 'Oaxaca', 'INSERT', 1), (123, 'Isabel', 'Monterrey', 'INSERT', 1)",
    "(125, 'Mercedes', 'Tijuana', 'INSERT', 2), (126, 'Lily', 'Cancun', 'INSERT', 2)",
    "(123, NULL, NULL, 'DELETE', 6), (125, 'Mercedes', 'Guadalajara', 'UPDATE', 6)",
    "(125, 'Mercedes', 'Mexicali', 'UPDATE', 5), (123, 'Isabel', 'Chihuahua', 'UPDATE', 5)")

  private val truncation = "(NULL, NULL, NULL, 'TRUNCATE', 3)"

  private def rows: Seq[String] =
    run("SELECT * FROM target").map(TextChangelog.format).sorted

  /** Runs the statement over the first events, then refreshes for each of the others. */
  private def check(statement: String, expected: Seq[String], all: Seq[String] = events): Unit = {
    run(s"INSERT INTO users VALUES ${all.head}")
    run(statement)
    all.tail.foreach { some =>
      run(s"INSERT INTO users VALUES $some")
      run("REFRESH MATERIALIZED VIEW target INCREMENTAL STRICT")
    }
    assert(rows == expected)
    assert(run("VERIFY MATERIALIZED VIEW target").isEmpty)
  }

  private def flow(clauses: String): String =
    s"""CREATE FLOW apply_cdc COMMENT 'it''s followed' AS AUTO CDC INTO target
       |FROM stream(users)
       |KEYS (userId)
       |$clauses;""".stripMargin

  test("SCD type 1") {
    check(
      flow("""APPLY AS DELETE WHEN operation = "DELETE"
          |SEQUENCE BY sequenceNum
          |COLUMNS * EXCEPT (operation, sequenceNum)
          |STORED AS SCD TYPE 1""".stripMargin),
      Seq("124 Raul Oaxaca", "125 Mercedes Guadalajara", "126 Lily Cancun"))
  }

  test("the comment of the flow is the view's") {
    run(flow("SEQUENCE BY sequenceNum"))
    assert(spark.catalog.getTable("target").description == "it's followed")
  }

  test("SCD type 1 with truncation") {
    check(
      flow("""APPLY AS DELETE WHEN operation = "DELETE"
          |APPLY AS TRUNCATE WHEN operation = "TRUNCATE"
          |SEQUENCE BY sequenceNum
          |COLUMNS * EXCEPT (operation, sequenceNum)
          |STORED AS SCD TYPE 1""".stripMargin),
      Seq("125 Mercedes Guadalajara", "127 Ana Lima"),
      events ++ Seq(truncation, "(127, 'Ana', 'Lima', 'INSERT', 7)"))
  }

  private val history = """APPLY AS DELETE WHEN operation = "DELETE"
    |SEQUENCE BY sequenceNum
    |COLUMNS * EXCEPT (operation, sequenceNum)
    |STORED AS SCD TYPE 2""".stripMargin

  test("SCD type 2") {
    check(
      flow(history),
      Seq(
        "123 Isabel Chihuahua 5 6",
        "123 Isabel Monterrey 1 5",
        "124 Raul Oaxaca 1 NULL",
        "125 Mercedes Guadalajara 6 NULL",
        "125 Mercedes Mexicali 5 6",
        "125 Mercedes Tijuana 2 5",
        "126 Lily Cancun 2 NULL"))
  }

  test("SCD type 2 with a subset of columns tracked") {
    check(
      flow(s"$history\nTRACK HISTORY ON * EXCEPT (city)"),
      Seq(
        "123 Isabel Chihuahua 1 6",
        "124 Raul Oaxaca 1 NULL",
        "125 Mercedes Guadalajara 2 NULL",
        "126 Lily Cancun 2 NULL"))
  }

  test("tracked columns are found in any case, and without one a key has one interval") {
    val clauses = "SEQUENCE BY sequenceNum COLUMNS (USERID, NAME) STORED AS SCD TYPE 2"
    val names = Seq("123 Isabel 1 6", "124 Raul 1 NULL", "125 Mercedes 2 NULL", "126 Lily 2 NULL")
    Seq(clauses, s"$clauses TRACK HISTORY ON (Name)").foreach { listed =>
      check(flow(s"APPLY AS DELETE WHEN operation = 'DELETE' $listed"), names)
      afterEach()
      beforeEach()
    }
    check(
      flow("SEQUENCE BY sequenceNum COLUMNS (userId) STORED AS SCD TYPE 2"),
      Seq("123 1 NULL", "124 1 NULL", "125 2 NULL", "126 2 NULL"))
  }

  test("a streaming table with its flow, listed columns, and an expression as sequence") {
    check(
      """CREATE STREAMING TABLE IF NOT EXISTS target FLOW AUTO CDC
        |FROM STREAM users KEYS (userId)
        |APPLY AS DELETE WHEN (operation IN ('DELETE', 'GONE'))
        |SEQUENCE BY struct(sequenceNum, operation) COLUMNS (userId, name)""".stripMargin,
      Seq("124 Raul", "125 Mercedes", "126 Lily"))
  }

  test("NULL keeps the value before it, but not that of a deleted row") {
    val sparse = Seq(
      "(1, 'Ada', 'Bern', 'INSERT', 1), (1, NULL, 'Rome', 'UPDATE', 3), (2, 'Ben', 'Oslo', 'INSERT', 1)",
      "(1, 'Eda', NULL, 'UPDATE', 2), (2, 'Ben', 'Kyiv', 'DELETE', 2)",
      "(2, 'Bo', NULL, 'INSERT', 3)")
    val clauses = """IGNORE NULL UPDATES APPLY AS DELETE WHEN operation = 'DELETE'
      |SEQUENCE BY sequenceNum COLUMNS (userId, name, city) STORED AS SCD TYPE """.stripMargin
    check(flow(clauses + "1"), Seq("1 Eda Rome", "2 Bo NULL"), sparse)
    run("DROP MATERIALIZED VIEW target")
    run(flow(clauses + "2"))
    assert(
      rows == Seq(
        "1 Ada Bern 1 2",
        "1 Eda Bern 2 3",
        "1 Eda Rome 3 NULL",
        "2 Ben Oslo 1 2",
        "2 Bo NULL 3 NULL"))
  }

  test("NULL does not keep a value before a truncation, also when the truncation comes late") {
    val sparse = Seq(
      "(1, 'Ada', 'Bern', 'INSERT', 1), (2, 'Ben', 'Oslo', 'INSERT', 1), (1, NULL, 'Rome', 'UPDATE', 3)",
      "(1, 'Eda', NULL, 'UPDATE', 5), (3, 'Cy', NULL, 'INSERT', 6)",
      "(NULL, NULL, NULL, 'TRUNCATE', 4), (1, NULL, 'Kyiv', 'UPDATE', 2)",
      "(3, NULL, 'Lima', 'UPDATE', 7)")
    check(
      flow("""IGNORE NULL UPDATES APPLY AS DELETE WHEN operation = 'DELETE'
          |APPLY AS TRUNCATE WHEN operation = 'TRUNCATE'
          |SEQUENCE BY sequenceNum COLUMNS (userId, name, city)""".stripMargin),
      Seq("1 Eda NULL", "3 Cy Lima"),
      sparse)
  }

  test("clauses that do not go together are refused by name") {
    def refused(clauses: String): AnalysisException =
      intercept[AnalysisException](run(flow(clauses)))
    Seq(
      "SEQUENCE BY sequenceNum STORED AS SCD TYPE 3",
      "APPLY AS TRUNCATE WHEN operation = 'T' SEQUENCE BY sequenceNum STORED AS SCD TYPE 2",
      "SEQUENCE BY sequenceNum TRACK HISTORY ON (name)").foreach { clauses =>
      assert(refused(clauses).getCondition == "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED", clauses)
    }
    assert(refused("APPLY AS DELETE WHEN true").getCondition == "CHANGELOG_SYNTAX_ERROR")
  }

  test("a clause with an unknown column, or with an expression, is refused by name") {
    val sequence = "SEQUENCE BY sequenceNum"
    Seq(
      "COLUMNS" -> s"$sequence COLUMNS * EXCEPT (cty)",
      "TRACK HISTORY ON" -> s"$sequence STORED AS SCD TYPE 2 TRACK HISTORY ON (nam)",
      "TRACK HISTORY ON" -> s"$sequence STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (nam)")
      .foreach { case (clause, clauses) =>
        checkError("CHANGELOG_COLUMN_NOT_FOUND", "argument" -> clause)(run(flow(clauses)))
      }
    Seq(s"$sequence COLUMNS (upper(name))", s"$sequence COLUMNS (users.name)").foreach {
      clauses =>
        checkError("CHANGELOG_SYNTAX_ERROR")(run(flow(clauses)))
    }
  }
}
