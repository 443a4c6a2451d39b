// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import scala.util.Try

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.analysis.LowerSources
import org.apache.spark.sql.changelog.sinks.SinkInput
import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.testing.grammar.{Grammar, RandomSqlProgram}

/** The key of a result is known under its names, whatever names the columns had on the way. */
class ResultKeysSuite extends AnyFunSuite with ChangelogSession {
  private val t = Feed("t", "id INT NOT NULL, g STRING, v INT", key = Seq("id"))
  private lazy val session = {
    val session = new QueryLife(spark, t).session()
    session.sql("CREATE TEMPORARY VIEW renamed AS SELECT id, g, v FROM t WHERE v > 3")
    session.sql("CREATE TEMPORARY VIEW twice AS SELECT * FROM renamed AS r")
    session.sql(
      "CREATE TEMPORARY VIEW typed (id, g, v) AS SELECT CAST(id AS INT), CAST(g AS STRING), CAST(v AS INT) FROM t")
    session.sql(
      "CREATE TEMPORARY VIEW widened AS SELECT CAST(id AS BIGINT) AS id, g, CAST(v AS BIGINT) AS v FROM t")
    session
  }

  private val tables = Seq(
    "t",
    "renamed",
    "twice",
    "typed",
    "widened",
    "(SELECT id, g, v FROM t)",
    "(SELECT id AS id, g AS g, v AS v FROM t)",
    "(SELECT * FROM (SELECT a.id AS id, a.g AS g, a.v AS v FROM t AS a))")

  private val queries = Seq(
    "SELECT v, count(*) AS n FROM OF GROUP BY v" -> Seq("v"),
    "SELECT x.v AS v, count(*) AS n FROM OF AS x GROUP BY x.v" -> Seq("v"),
    "SELECT x.v AS w, count(*) AS n FROM OF AS x GROUP BY x.v" -> Seq("w"),
    "SELECT DISTINCT v FROM OF" -> Seq("v"),
    "SELECT DISTINCT v, g FROM OF" -> Seq("v", "g"),
    "SELECT id, g FROM OF" -> Seq("id"),
    "SELECT id, g FROM OF ORDER BY v, id LIMIT 2" -> Seq("id"),
    "SELECT g, v FROM (SELECT id, g, v, row_number() OVER (PARTITION BY g ORDER BY v, id) AS r FROM OF) WHERE r = 1" -> Seq(
      "g"),
    "SELECT a.id, b.g FROM OF AS a JOIN OF AS b ON a.id = b.id" -> Seq("id"),
    "SELECT a.v, a.n FROM (SELECT v, count(*) AS n FROM OF GROUP BY v) AS a JOIN (SELECT DISTINCT v FROM OF) AS b ON a.v = b.v" -> Seq(
      "v"))

  for ((query, key) <- queries; table <- tables) test(query.replace("OF", table)) {
    val input = this.input(session, query.replace("OF", table))
    assert(input.key(None).contains(key))
  }

  test("a sink knows the keys of queries of any shape") {
    val keys = (1L to 20L).flatMap { seed =>
      val (program, _) = RandomSqlProgram(seed, Grammar.Widest)
      // no source of files has columns of CHAR and VARCHAR
      val feeds = program.feeds.map(feed => feed.copy(columns = feed.schema.toDDL))
      val session = new QueryLife(spark, feeds: _*).session()
      RandomSqlProgram.functions.foreach(session.sql)
      program.views.foreach { case (name, make) => make(session).createOrReplaceTempView(name) }
      // one that is refused has no key
      Try(input(session, program.sql)).toOption.map { input =>
        val output = input.sources.head
        val known = output.upsertKeys.filter(SinkInput.isComparable).map(_.map(_.name).toSet)
        withClue(s"seed $seed, ${program.sql}:\n") {
          if (known.nonEmpty) assert(input.key(None).map(_.toSet).exists(known.contains))
        }
        known.nonEmpty
      }
    }
    assert(keys.count(identity) > 4, s"of ${keys.size}")
  }

  /** What a sink is told of a query when it is started. */
  private def input(session: SparkSession, sql: String): SinkInput = {
    val analyzed =
      session.sql(s"SELECT * FROM to_changelog(TABLE($sql))").queryExecution.analyzed
    val optimized = session.withActive {
      session.sessionState.optimizer.execute(LowerSources(analyzed))
    }
    SinkInput("changelog-jdbc", analyzed.output, optimized)
  }
}
