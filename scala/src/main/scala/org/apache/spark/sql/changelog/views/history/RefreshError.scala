// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.history

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.util.Utils

/** Says in a line why a refresh failed, without secrets. */
object RefreshError {
  private val Longest = 1000

  def apply(session: SparkSession, error: Throwable): String = {
    val cause = named(error).getOrElse(chain(error).last)
    val message = Option(cause.getMessage).getOrElse(error.getClass.getName)
    val line = message.linesIterator.map(_.trim).find(_.nonEmpty).getOrElse("")
    Utils.redact(session.sessionState.conf.stringRedactionPattern, line).take(Longest)
  }

  /** The error that says what has failed, without what Spark has wrapped it in. */
  def causeOf(error: Throwable): Throwable = named(error).getOrElse(error)

  /** What has a name of its own: Spark wraps what fails in a stream, a task or a thread. */
  private def named(error: Throwable): Option[Throwable] = {
    val conditions = chain(error).collect {
      case cause: SparkThrowable if cause.getCondition != null => cause -> cause.getCondition
    }
    conditions
      .find { case (_, condition) => condition.startsWith("CHANGELOG") }
      .orElse(conditions.find { case (_, condition) => !wrappers.contains(condition) })
      .map { case (cause, _) => cause: Throwable }
  }

  private def chain(error: Throwable): Seq[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq

  private val wrappers = Set("STREAM_FAILED", "INTERNAL_ERROR", "TASK_WRITE_FAILED")
}
