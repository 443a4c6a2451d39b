// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Statements that are nearly ours are told with the one that is meant; all others are Spark's. */
class NearestStatementSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private def isMeant(sql: String, syntax: String): Unit = withClue(sql) {
    val begun = sql.trim.split("\\s+").take(6).mkString(" ")
    checkError("CHANGELOG_STATEMENT_UNKNOWN", "statement" -> begun, "syntax" -> syntax)(
      spark.sql(sql))
  }

  private val refresh =
    "REFRESH MATERIALIZED VIEW v [FULL | INCREMENTAL [STRICT] | WITH UPSTREAM]"

  test("a mistyped word of a statement is no riddle") {
    isMeant("REFRES MATERIALIZED VIEW v", refresh)
    isMeant("REFRESH MATERIALISED VIEW v", refresh)
    isMeant("refres materialised view v", refresh)
    isMeant("CREATE MATERIALIZED VEIW v AS SELECT 1", "CREATE MATERIALIZED VIEW v AS query")
    isMeant(
      "CREATE OR REPLACE STREAMING TABEL t AS SELECT 1",
      "CREATE OR REPLACE STREAMING TABLE t AS query")
    isMeant("SHOW MATERIALIZED VEIWS", "SHOW MATERIALIZED VIEWS [IN database] [LIKE 'pattern']")
    isMeant("STOPP STREAMING TABLE t", "STOP STREAMING TABLE t")
    isMeant("EXPLAIN CHANGELO SELECT 1", "EXPLAIN CHANGELOG [VERBOSE | FORMAT …] query")
    isMeant(
      "RESCALE CHECKPONIT 'a' INTO 'b' PARTITIONS 4",
      "RESCALE CHECKPOINT '…' INTO '…' PARTITIONS n")
  }

  test("a statement that begins right and goes on wrong is told how it goes on") {
    isMeant("REFRESH MATERIALIZED VIEW v FUL", refresh)
    isMeant(
      "VERIFY MATERIALIZED VIEW v SAMPLE 5",
      "VERIFY MATERIALIZED VIEW v [SAMPLE n PERCENT]")
    isMeant("RESCALE CHECKPOINT 'a' PARTITIONS 4", "RESCALE CHECKPOINT '…' INTO '…' PARTITIONS n")
  }

  /** What a session without the extension says, which is what ours must say. */
  private def isSparks(sql: String): Unit = withClue(sql) {
    val ours = intercept[ParseException](spark.sql(sql))
    assert(!ours.getCondition.startsWith("CHANGELOG"))
    assert(NearestStatement(sql).isEmpty)
  }

  test("what is wrong in a query, or in a statement of Spark's, is said by Spark") {
    Seq(
      "CREATE MATERIALIZED VIEW v AS SELEC 1",
      "EXPLAIN CHANGELOG SELEC 1",
      "SELEC 1",
      "SHOW TABELS",
      "CREATE TABEL t (id INT)",
      "CREATE OR REPLACE VEIW v AS SELECT 1",
      "DROP VEIW v",
      "REFRESH TABEL t u",
      "EXPLAIN COSTS SELECT 1",
      "ALTER TABEL t RENAME TO u",
      "DESCRIBE HISTORI t u v w",
      "").foreach(isSparks)
  }
}
