// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.expressions.Aggregator
import org.apache.spark.sql.functions.udaf
import org.apache.spark.sql.{Encoder, Encoders}

import org.apache.spark.sql.changelog.analysis.LowerSources
import org.apache.spark.sql.changelog.identity.SourceNames
import org.apache.spark.sql.changelog.testing._

/** State is kept for a part of a changed query that is certainly the same, and for no other. */
class FingerprintsSuite extends AnyFunSuite with ChangelogSession {
  private val t = Feed("t", "id INT, g STRING, v INT")

  /** The fingerprints of the operators of a query that is planned in a session of its own. */
  private def fingerprints(sql: String): Seq[Option[String]] = {
    val life = new QueryLife(spark, t)
    val session = life.session()
    session.udf.register("tax", (value: Int) => value + 1)
    session.udf.register("total", udaf(FingerprintsSuite.Total))
    val values = session.sql("SELECT v FROM t").as(Encoders.scalaInt)
    values.map(_ + 1)(Encoders.scalaInt).createOrReplaceTempView("mapped")
    values.filter(_ > 1).createOrReplaceTempView("filtered")
    val analyzed =
      session.sql(s"SELECT * FROM to_changelog(TABLE($sql))").queryExecution.analyzed
    val planned = session.withActive {
      session.sessionState.optimizer.execute(LowerSources(analyzed))
    }
    // where the files of the table lie
    val sources = SourceNames.byNumber(analyzed).map { case (number, _) => number -> "t" }
    RewrittenOperators.in(planned, sources).map(_.part.map(_.fingerprint))
  }

  for ((one, other) <- EditedExpressions.over("v")) test(s"$one is not $other") {
    def counts(expression: String) =
      s"SELECT e, count(*) AS c FROM (SELECT $expression AS e FROM t) GROUP BY e"
    val Seq(part) = fingerprints(counts(one))
    assert(part.isDefined)
    assert(fingerprints(counts(one)) == Seq(part))
    assert(fingerprints(counts(other)) != Seq(part))
  }

  test("a part with a condition on the time has the same fingerprint in each batch") {
    def recent(days: Int) =
      s"SELECT g, count(*) AS c FROM t WHERE timestamp_seconds(v) > now() - INTERVAL $days DAYS GROUP BY g"
    val parts = fingerprints(recent(1))
    assert(parts.size == 2 && parts.forall(_.isDefined))
    assert(fingerprints(recent(1)) == parts)
    assert(fingerprints(recent(2)).intersect(parts).isEmpty)
  }

  private val ofUsers = Seq(
    "SELECT g, max(tax(v)) AS m FROM t GROUP BY g",
    "SELECT g, total(v) AS m FROM t GROUP BY g",
    "SELECT g, count(*) AS m FROM t WHERE tax(v) > 1 GROUP BY g",
    "SELECT value, count(*) AS m FROM mapped GROUP BY value",
    "SELECT v, count(*) AS m FROM filtered GROUP BY v")

  for (sql <- ofUsers) test(s"what a function of the user does is not known: $sql") {
    assert(fingerprints(sql) == Seq(None))
  }

  test("a part below a function of the user is known") {
    val Seq(below, above) = fingerprints(
      "SELECT tax(c) AS x, count(*) AS n FROM (SELECT g, count(*) AS c FROM t GROUP BY g) GROUP BY tax(c)")
    assert(below.isDefined)
    assert(above.isEmpty)
  }
}

object FingerprintsSuite {

  private object Total extends Aggregator[Int, Long, Long] {
    override def zero: Long = 0
    override def reduce(sum: Long, value: Int): Long = sum + value
    override def merge(one: Long, other: Long): Long = one + other
    override def finish(sum: Long): Long = sum
    override def bufferEncoder: Encoder[Long] = Encoders.scalaLong
    override def outputEncoder: Encoder[Long] = Encoders.scalaLong
  }
}
