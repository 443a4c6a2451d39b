// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import scala.annotation.tailrec
import scala.util.{Failure, Success, Try}

import org.apache.spark.SparkThrowable
import org.apache.spark.internal.Logging

/**
 * What Delta refuses because somebody else has changed the table meanwhile, though none of its rows: its properties, or by
 * `OPTIMIZE` where they are. A statement can be run again then, and writes what it was to write.
 */
private[table] object DeltaConflicts extends Logging {
  private val Most = 5

  /** Runs a statement, more than once if need be. */
  @tailrec
  def passing[T](statement: => T, left: Int = Most): T = Try(statement) match {
    case Success(result) => result
    case Failure(error) if left > 0 && passes(error) =>
      logInfo(log"A table was changed while it was written, which is tried again", error)
      passing(statement, left - 1)
    case Failure(error) => throw error
  }

  private def passes(error: Throwable): Boolean = error match {
    case named: SparkThrowable =>
      def isMoved =
        Option(named.getMessageParameters.get("operation")).exists(_.contains("OPTIMIZE"))
      Option(named.getCondition).exists { condition =>
        Unlike(condition) || condition.startsWith(Concurrent) && isMoved
      }
    case _ => false
  }

  private val Unlike = Set("DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
  private val Concurrent = "DELTA_CONCURRENT_"
}
