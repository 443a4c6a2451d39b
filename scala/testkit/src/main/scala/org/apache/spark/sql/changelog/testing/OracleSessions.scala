// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable

import org.apache.spark.sql.catalyst.optimizer.{
  EliminateLimits, PushProjectionThroughLimitAndOffset
}
import org.apache.spark.sql.classic.SparkSession

/** The sessions of an [[Oracle]], created like `first`. */
private[changelog] class OracleSessions(first: SparkSession) {
  private val setups = mutable.ArrayBuffer.empty[SparkSession => Unit]

  /**
   * The session for batch queries. The queries are small, and compiling their code would take longer than
   * running them.
   */
  lazy val batch: SparkSession = {
    val session = first.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    // in tests, Spark fails if a second run of its rule would drop a limit above an offset
    session.conf.set("spark.sql.optimizer.excludedRules", EliminateLimits.ruleName)
    session
  }

  /**
   * Runs a batch query without Spark's rule that moves columns below limits. A column with a correlated
   * subquery becomes a join there, and the limit then takes any rows of the join.
   */
  def keepingLimits[T](body: => T): T = {
    val key = "spark.sql.optimizer.excludedRules"
    val excluded = batch.conf.get(key)
    batch.conf.set(key, s"$excluded,${PushProjectionThroughLimitAndOffset.ruleName}")
    try body
    finally batch.conf.set(key, excluded)
  }

  /** Returns a session without earlier queries, with the current settings of `first`. */
  def next(): SparkSession = {
    val session = first.newSession()
    first.sessionState.conf.getAllConfs.foreach { case (key, value) =>
      session.sessionState.conf.setConfString(key, value)
    }
    setups.foreach(_(session))
    session
  }

  /** Calls `body` for every session, including sessions created later. */
  def inAll(body: SparkSession => Unit): Unit = {
    setups += body
    Seq(first, batch).foreach(body)
  }

  def withConf[T](conf: Map[String, String])(body: => T): T = {
    val before = conf.keys.map(key => key -> first.conf.getOption(key)).toMap
    val sessions = Seq(first, batch)
    sessions.foreach(session =>
      conf.foreach { case (key, value) => session.conf.set(key, value) })
    try body
    finally
      sessions.foreach { session =>
        before.foreach {
          case (key, Some(value)) => session.conf.set(key, value)
          case (key, None) => session.conf.unset(key)
        }
      }
  }
}
