// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import scala.annotation.tailrec
import scala.util.{DynamicVariable, Failure, Success, Try}

import org.apache.spark.internal.Logging

import org.apache.spark.sql.changelog.checkpoint.Fence

/** Makes a commit within the fences of its thread, and again if maintenance of the table beside it made it fail. */
private[changelog] object DeltaConflicts extends Logging {
  private val Most = 5
  private val changing = new DynamicVariable[Option[DeltaProperties]](None)

  /** Runs a statement, again if need be. */
  @tailrec
  def passing[T](statement: => T, left: Int = Most): T = Try(observed(statement)) match {
    case Success(result) => result
    case Failure(error) if left > 0 && Delta.isMaintenanceConflict(error) =>
      logInfo(log"Another writer changed a table during the write; the commit is repeated", error)
      passing(statement, left - 1)
    case Failure(error) => throw error
  }

  /** Has the commits that write the table of some properties change these, too. */
  def changing[T](properties: DeltaProperties)(statement: => T): T =
    changing.withValue(Some(properties))(observed(statement))

  private def observed[T](statement: => T): T =
    if (Fence.isSet || changing.value.nonEmpty) DeltaWrites.observed(changing.value)(statement)
    else statement
}

/**
 * The properties that a table gets in the commit that changes its rows.
 *
 * @param prefix
 *   how the names of all of them begin; those that the table has and `values` lacks go
 * @param kept
 *   names of properties that stay
 */
private[changelog] final case class DeltaProperties(
    prefix: String,
    values: Map[String, String],
    kept: Set[String]) {

  /** The properties of the table from then on; none if it is another table. */
  private[delta] def of(before: Map[String, String]): Option[Map[String, String]] = {
    val (own, others) = before.partition { case (name, _) => name.startsWith(prefix) }
    Option.when(own.nonEmpty)(
      others ++ own.filter(property => kept(property._1)) ++
        values.filter(_._1.startsWith(prefix)))
  }
}
