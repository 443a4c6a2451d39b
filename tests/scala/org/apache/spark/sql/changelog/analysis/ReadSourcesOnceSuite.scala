// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.types.Metadata

import org.apache.spark.sql.changelog.plans.FromChangelog
import org.apache.spark.sql.changelog.testing._

/** Which queries read a source once that they name several times. */
class ReadSourcesOnceSuite extends AnyFunSuite with ChangelogSession {

  /** How many sources of the query have columns of their own. */
  private def numSources(sql: String): Int = {
    new RawStream(spark, "raw", "op STRING, k INT, v INT, at TIMESTAMP")
    spark
      .sql("SELECT * FROM from_changelog(TABLE(raw), 'op', array('k'))")
      .createOrReplaceTempView("t")
    val query = spark.sql(s"SELECT * FROM to_changelog(TABLE($sql))").queryExecution.analyzed
    query.collectWithSubqueries { case source: FromChangelog => source.output }.distinct.size
  }

  test("a table that is joined with itself, or found in a union or a subquery, is read once") {
    assert(numSources("SELECT a.k, b.v FROM t a JOIN t b ON a.k = b.v") == 1)
    assert(numSources("SELECT k FROM t UNION ALL SELECT v FROM t") == 1)
    assert(numSources("SELECT k FROM t EXCEPT SELECT v FROM t") == 1)
    assert(numSources("SELECT k FROM t WHERE v = (SELECT max(v) FROM t)") == 1)
    assert(
      numSources("WITH c AS (SELECT k, v FROM t) SELECT a.k FROM c a JOIN c b ON a.k = b.v") == 1)
  }

  test("what is read once more has the columns of the source, and nothing of how it is read") {
    new RawStream(spark, "raw", "op STRING, k INT, v INT, at TIMESTAMP")
    spark
      .sql("SELECT * FROM from_changelog(TABLE(raw), 'op', array('k'))")
      .createOrReplaceTempView("t")
    val query = "SELECT b.*, a.v AS w FROM t a JOIN t b ON a.k = b.v"
    val changes = spark.sql(s"SELECT * FROM to_changelog(TABLE($query))")
    assert(changes.schema.forall(_.metadata == Metadata.empty))
  }

  test("where Spark would mistake the sides of a join for each other, each has a source") {
    assert(numSources("SELECT a.k, b.v FROM t a JOIN lookup(TABLE(t)) b ON a.k = b.v") == 2)
    assert(
      numSources("SELECT a.k, b.v FROM t a JOIN LATERAL (SELECT v FROM t c WHERE c.k = a.v " +
        "AND c.at <= a.at ORDER BY c.at DESC LIMIT 1) b") == 2)
  }
}
