// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package io.sparkchangelog.testkit

import scala.util.Random

import org.scalatest.Suite

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic

import org.apache.spark.sql.changelog.testing.{Oracle, Scenario, ScenarioChecks}

/**
 * Checks queries over changing tables, in a ScalaTest suite.
 *
 * {{{
 *   class TotalsSuite extends AnyFunSuite with ChangelogChecks {
 *     override protected lazy val spark: SparkSession = ... // with the extension
 *
 *     test("a city without rides has no total") {
 *       checkChangelog("""
 *         feed rides(city STRING, fare INT)
 *         query SELECT city, sum(fare) AS total FROM rides GROUP BY city
 *         rides +I Oslo 5
 *         -> +I Oslo 5
 *         rides -D Oslo 5
 *         -> -D Oslo 5
 *       """)
 *     }
 *   }
 * }}}
 */
trait ChangelogChecks { this: Suite =>

  /** A classic session with the extension. Queries run in sessions with the same settings. */
  protected def spark: SparkSession

  private lazy val oracle = new Oracle(spark.asInstanceOf[classic.SparkSession])
  private lazy val checks = new ScenarioChecks(oracle)

  /** Calls `body`, for example to register a function, for every session that runs queries. */
  protected def inChangelogSessions(body: SparkSession => Unit): Unit = oracle.inSessions(body)

  /**
   * Checks a query against its expected changes, both written as text.
   *
   * After each batch, the emitted changes are replayed into an empty table. The table must equal batch Spark's
   * result of the same SQL over the complete input so far.
   *
   * @param text
   *   feeds, query and changes, in the format of `org.apache.spark.sql.changelog.testing.Scenario`
   * @param cuts
   *   how often the changes are regrouped into random batches, with a random state store and possible restarts
   * @param seed
   *   the random seed of the first regrouping; the next ones use the following numbers. A failure reports the
   *   seed
   */
  protected def checkChangelog(
      text: String,
      cuts: Int = 1,
      seed: Long = Random.nextInt(1000000)): Unit = {
    val scenario = Scenario.parse(suiteName, dedented(text))
    scenario.error match {
      case Some(error) => checks.refused(scenario, error)
      case None =>
        checks.batchByBatch(scenario)
        (0 until cuts).foreach(index => checks.cut(scenario, seed + index))
    }
  }

  private def dedented(text: String): String = {
    val lines = text.linesIterator.filterNot(_.isBlank).toSeq
    val margin = lines.map(_.indexWhere(!_.isWhitespace)).minOption.getOrElse(0)
    lines.map(_.drop(margin)).mkString("\n")
  }
}
