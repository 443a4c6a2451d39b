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
    val message = Option(causeOf(error).getMessage).getOrElse(error.getClass.getName)
    val line = message.linesIterator.map(_.trim).find(_.nonEmpty).getOrElse("")
    Utils.redact(session.sessionState.conf.stringRedactionPattern, line).take(Longest)
  }

  /** What has a name of its own: Spark wraps what fails in a stream, a task or a thread. */
  private def causeOf(error: Throwable): Throwable = {
    val causes = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq
    val named = causes.collect {
      case cause: SparkThrowable if cause.getCondition != null => cause -> cause.getCondition
    }
    named
      .find { case (_, condition) => condition.startsWith("CHANGELOG") }
      .orElse(named.find { case (_, condition) => !wrappers.contains(condition) })
      .map { case (cause, _) => cause: Throwable }
      .getOrElse(causes.last)
  }

  private val wrappers = Set("STREAM_FAILED", "INTERNAL_ERROR", "TASK_WRITE_FAILED")
}
