// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable

import org.apache.spark.sql.catalyst.optimizer.{
  EliminateLimits,
  PushProjectionThroughLimitAndOffset
}
import org.apache.spark.sql.classic.SparkSession

/** The sessions in which an [[Oracle]] runs queries, made like `first`. */
private[changelog] class OracleSessions(first: SparkSession) {
  private val setups = mutable.ArrayBuffer.empty[SparkSession => Unit]

  /** Runs the batch queries: small ones, for which compiling code takes longer than they do. */
  lazy val batch: SparkSession = {
    val session = first.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    // in tests Spark fails where a second run of its own rule would drop a limit above an offset
    session.conf.set("spark.sql.optimizer.excludedRules", EliminateLimits.ruleName)
    session
  }

  /**
   * Runs a batch query without a rule of Spark's that moves columns below limits, where those with a
   * correlated subquery become joins, above which the limit takes any rows.
   */
  def keepingLimits[T](body: => T): T = {
    val key = "spark.sql.optimizer.excludedRules"
    val excluded = batch.conf.get(key)
    batch.conf.set(key, s"$excluded,${PushProjectionThroughLimitAndOffset.ruleName}")
    try body
    finally batch.conf.set(key, excluded)
  }

  /** A session that no query has run in, with the settings that `first` has now. */
  def next(): SparkSession = {
    val session = first.newSession()
    first.sessionState.conf.getAllConfs.foreach { case (key, value) =>
      session.sessionState.conf.setConfString(key, value)
    }
    setups.foreach(_(session))
    session
  }

  /** Does something in all sessions, those that are yet to be made among them. */
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
