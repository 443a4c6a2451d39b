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

  private val explain = "EXPLAIN CHANGELOG [VERBOSE | FORMAT {TEXT | JSON | HTML | SVG}] query"
  private val why = "WHY {MATERIALIZED VIEW v [WHERE condition] | query}"
  private val alter =
    "ALTER MATERIALIZED VIEW v {AS query | SET PARTITIONS n | SET TBLPROPERTIES (…) | RENAME TO w | SWAP WITH w}"

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
    isMeant("EXPLAIN CHANGELO SELECT 1", explain)
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
    isMeant("WHY MATERIALIZED VIEW v city = 'a'", why)
    isMeant("ALTER MATERIALIZED VIEW v SET PARTITION 4", alter)
    isMeant("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES a = 1", alter)
    isMeant("CREATE MATERIALIZED VIEW v SELECT 1", "CREATE MATERIALIZED VIEW v AS query")
    isMeant(
      "EXPLAIN CREATE MATERIALIZED VIEW v SELECT 1",
      "EXPLAIN CREATE MATERIALIZED VIEW v AS query")
    isMeant("EXPLAIN CHANGELOG FORMAT PNG SELECT 1", explain)
  }

  test("a statement that only this extension has needs its verb alone to be known") {
    val verify = "VERIFY MATERIALIZED VIEW v [SAMPLE n PERCENT]"
    isMeant("VERIFY VIEW v", verify)
    isMeant("VERIFY v", verify)
    isMeant("VERIFY TABLE t", "VERIFY STREAMING TABLE t [SAMPLE n PERCENT]")
    isMeant("WHY v", why)
    isMeant("WHY", why)
    isMeant("WHY SELEC 1", why)
    isMeant("SHOW REFRESHES v", "SHOW REFRESHES OF v")
    isMeant("SHOW REFRESHES orders", "SHOW REFRESHES OF v")
    isMeant("REFRESH VIEW v", refresh)
    isMeant("START v", "START MATERIALIZED VIEW v")
    isMeant("STOP VIEW v", "STOP MATERIALIZED VIEW v")
    isMeant("COMPARE v WITH w", "COMPARE MATERIALIZED VIEW v WITH w")
    isMeant("RESTORE VIEW v TO BATCH 1", "RESTORE MATERIALIZED VIEW v TO {BATCH n | SAVEPOINT s}")
    isMeant("EVOLVE 'a' AS SELECT 1", "EVOLVE CHECKPOINT '…' INTO '…' [TARGET table] AS query")
    isMeant("FORK 'a' INTO 'b'", "FORK CHECKPOINT '…' [AT BATCH n | AT SAVEPOINT s] INTO '…'")
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
      "ALTER MATERIALIZED VIEW v AS SELEC 1",
      "EXPLAIN CREATE MATERIALIZED VIEW v AS SELEC 1",
      "EXPLAIN CHANGELOG SELEC 1",
      "EXPLAIN CHANGELOG FORMAT JSON SELEC 1",
      "EVOLVE CHECKPOINT 'a' INTO 'b' AS SELEC 1",
      "WHY SELECT 1 FRM t x y",
      "WHY MATERIALIZED VIEW v WHERE city IN",
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
