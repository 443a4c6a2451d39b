// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package io.sparkchangelog.testkit

import scala.util.Random

import org.scalatest.Suite

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic

import org.apache.spark.sql.changelog.testing.{Oracle, Scenario, ScenarioChecks}

/**
 * Checks queries over tables that change, in a suite of ScalaTest.
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

  /** A classic session with the extension. Queries run in sessions made like it. */
  protected def spark: SparkSession

  private lazy val oracle = new Oracle(spark.asInstanceOf[classic.SparkSession])
  private lazy val checks = new ScenarioChecks(oracle)

  /** Does something, such as registering a function, in all sessions that queries run in. */
  protected def inChangelogSessions(body: SparkSession => Unit): Unit = oracle.inSessions(body)

  /**
   * Checks a query with the changes that it must emit, both written as text.
   *
   * After each batch what it has emitted so far, replayed into an empty table, must be what batch
   * Spark answers to the same SQL over everything that has arrived.
   *
   * @param text
   *   feeds, query and changes, as `org.apache.spark.sql.changelog.testing.Scenario` says
   * @param cuts
   *   how often the batches are put together in others, by chance, with any state store and maybe
   *   with restarts
   * @param seed
   *   what the first of them is drawn from, and the next ones from the numbers that follow; a failure
   *   tells it
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
