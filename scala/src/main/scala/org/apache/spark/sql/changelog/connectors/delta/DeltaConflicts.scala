// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import scala.annotation.tailrec
import scala.util.{Failure, Success, Try}

import org.apache.spark.internal.Logging

/** Makes a commit again that has failed because of maintenance of the table beside it. */
private[changelog] object DeltaConflicts extends Logging {
  private val Most = 5

  /** Runs a statement, again if need be. */
  @tailrec
  def passing[T](statement: => T, left: Int = Most): T = Try(statement) match {
    case Success(result) => result
    case Failure(error) if left > 0 && Delta.isMaintenanceConflict(error) =>
      logInfo(log"Another writer changed a table during the write; the commit is repeated", error)
      passing(statement, left - 1)
    case Failure(error) => throw error
  }
}
