// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.util.Try

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

/**
 * Holds a query that is kept up to date against the same query run as a batch.
 *
 * After every step, what the query has emitted so far is replayed into an empty table, which must
 * then equal batch Spark's result over everything that has arrived. On the way it is checked that
 * nothing is taken back that was not there, and that no batch says more than it must.
 */
class Oracle(spark: SparkSession) {
  private[changelog] val sessions = new OracleSessions(spark)

  /** Does something, such as registering a function, in all sessions that queries run in. */
  def inSessions(body: SparkSession => Unit): Unit = sessions.inAll(body)

  /**
   * Whether batch Spark plans the program's query, over tables of which it knows no row: what it
   * knows to be empty it leaves out, and with it what it can't plan.
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

  /** Runs `program` and checks it after every step. Returns the changes emitted per step. */
  def check(program: Program, variant: Variant = Variant()): Seq[Seq[Change]] =
    run(program, variant, compares = true)

  /**
   * Like [[check]], for a query that batch Spark may answer in several ways: its result is not
   * compared, but nothing may be taken back that was not given.
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

  /** Checks a program in several ways; all must emit the same net changes. */
  def checkAll(program: Program, variants: Seq[Variant] = Variant.all): Unit =
    variants.foreach { variant =>
      try check(program, variant)
      catch {
        case error: Throwable =>
          throw new AssertionError(s"in variant [$variant] of\n${program.sql}\n$error", error)
      }
    }
}
