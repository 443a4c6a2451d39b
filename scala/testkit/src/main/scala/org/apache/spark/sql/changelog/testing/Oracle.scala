// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.util.Try

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

/**
 * Compares an incrementally computed query with the same query run as a batch.
 *
 * After every step, the emitted changes are replayed into an empty table. The table must equal batch Spark's
 * result over the complete input so far. The oracle also checks that each retraction matches a row, and that
 * each batch's changelog is minimal.
 */
class Oracle(spark: SparkSession) {
  private[changelog] val sessions = new OracleSessions(spark)

  /** Calls `body`, for example to register a function, for every session that runs queries. */
  def inSessions(body: SparkSession => Unit): Unit = sessions.inAll(body)

  /**
   * Returns whether batch Spark can plan the program's query. The tables have unknown contents, because Spark
   * removes tables known to be empty, together with nodes that it could not plan.
   */
  def accepts(program: Program): Boolean = {
    program.feeds.foreach { feed =>
      sessions.batch
        .createDataFrame(spark.sparkContext.emptyRDD[Row], feed.schema)
        .createOrReplaceTempView(feed.name)
    }
    program.createViews(sessions.batch)
    Try(sessions.batch.sql(program.sql).queryExecution.optimizedPlan).isSuccess
  }

  /** Runs `program` and checks the result after every step. Returns the emitted changes per step. */
  def check(program: Program, variant: Variant = Variant()): Seq[Seq[Change]] =
    run(program, variant, compares = true)

  /**
   * Runs `program` like [[check]], for a query with several correct results. The result is not compared, but
   * each retraction must match a row.
   */
  def run(
      program: Program,
      variant: Variant = Variant(),
      compares: Boolean = false): Seq[Seq[Change]] =
    sessions.withConf(variant.conf) {
      val run = new ProgramRun(sessions, program, variant, compares)
      try program.steps.map(run.step)
      finally run.stop()
    }

  /** Checks a program in several variants. The net changes must not differ. */
  def checkAll(program: Program, variants: Seq[Variant] = Variant.all): Unit =
    variants.foreach { variant =>
      try check(program, variant)
      catch {
        case error: Throwable =>
          throw new AssertionError(s"in variant [$variant] of\n${program.sql}\n$error", error)
      }
    }
}
