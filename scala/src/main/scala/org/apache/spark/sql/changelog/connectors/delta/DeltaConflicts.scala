// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import scala.annotation.tailrec
import scala.util.{DynamicVariable, Failure, Success, Try}

import org.apache.spark.internal.Logging

import org.apache.spark.sql.changelog.checkpoint.Fence

/** Commits within the fences of the thread. Repeats a commit that failed because of concurrent maintenance. */
private[changelog] object DeltaConflicts extends Logging {
  private val Most = 5
  private val changing = new DynamicVariable[Option[DeltaProperties]](None)

  /** Runs a statement, and repeats the statement after a conflict with maintenance. */
  @tailrec
  def passing[T](statement: => T, left: Int = Most): T = Try(observed(statement)) match {
    case Success(result) => result
    case Failure(error) if left > 0 && Delta.isMaintenanceConflict(error) =>
      logInfo(log"Another writer changed a table during the write; the commit is repeated", error)
      passing(statement, left - 1)
    case Failure(error) => throw error
  }

  /** Lets the statement's commits to the table with certain properties also change these properties. */
  def changing[T](properties: DeltaProperties)(statement: => T): T =
    changing.withValue(Some(properties))(observed(statement))

  private def observed[T](statement: => T): T =
    if (Fence.isSet || changing.value.nonEmpty) DeltaWrites.observed(changing.value)(statement)
    else statement
}

/**
 * The properties set by a commit that changes a table's rows.
 *
 * @param prefix
 *   the prefix of the names. Properties with this prefix and without a new value are removed.
 * @param kept
 *   names of properties to leave as they are
 */
private[changelog] final case class DeltaProperties(
    prefix: String,
    values: Map[String, String],
    kept: Set[String]) {

  /** Returns the table's new properties, or None for other tables. */
  private[delta] def of(before: Map[String, String]): Option[Map[String, String]] = {
    val (own, others) = before.partition { case (name, _) => name.startsWith(prefix) }
    Option.when(own.nonEmpty)(
      others ++ own.filter(property => kept(property._1)) ++
        values.filter(_._1.startsWith(prefix)))
  }
}
