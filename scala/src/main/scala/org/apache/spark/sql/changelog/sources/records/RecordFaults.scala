// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types.{ArrayType, BinaryType, StringType}
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.sources.ChangeTypes

/**
 * Decides what becomes of a record that can't be read: it fails the query, or counts as one change
 * that is dropped.
 */
private[changelog] class RecordFaults(val function: String, drop: Boolean) extends Serializable {

  /** Called from generated code. */
  def refuse(fault: UTF8String, place: UTF8String, record: UTF8String): ArrayData =
    if (drop) new GenericArrayData(Array[Any](InternalRow(ChangeTypes.Dropped, null, null)))
    else {
      throw ChangelogErrors.recordMalformed(
        function,
        told(place),
        fault.toString,
        RecordFaults.shown(record))
    }

  /** Called from generated code. Dropped, it would leave all rows that are gone. */
  def refuseTruncation(place: UTF8String, record: UTF8String): ArrayData =
    throw ChangelogErrors.recordTruncates(function, told(place), RecordFaults.shown(record))

  private def told(place: UTF8String): Option[String] =
    Option(place).map(_.toString).filter(_.nonEmpty)

  /** The changes of a record with a fault, as an expression. */
  def refuse(
      changes: ArrayType,
      fault: Expression,
      place: Expression,
      record: Expression): Expression =
    call("refuse", changes, Seq(fault, place, record))

  /** The changes of a record that removes all rows, as an expression. */
  def refuseTruncation(changes: ArrayType, place: Expression, record: Expression): Expression =
    call("refuseTruncation", changes, Seq(place, record))

  private def call(method: String, changes: ArrayType, arguments: Seq[Expression]): Expression =
    Invoke(
      Literal.fromObject(this),
      method,
      changes,
      arguments,
      propagateNull = false,
      // keeps the optimizer from evaluating it, and the record, twice
      isDeterministic = false)
}

private[changelog] object RecordFaults {

  /** How much of a record an error shows. */
  private val MaxShown = 500

  /** What comes before it in a record with its schema, which says the same of all records, is long. */
  private val Payload = "\"payload\":"

  private def shown(record: UTF8String): String = {
    val text = Option(record).map(_.toString).getOrElse("NULL")
    val payload = text.indexOf(Payload)
    val told = if (text.length > MaxShown && payload > 0) "..." + text.drop(payload) else text
    if (told.length > MaxShown) told.take(MaxShown) + "..." else told
  }

  /** Where a record is: whatever else its row tells, such as `partition=0, offset=17`. */
  def place(values: Seq[(String, Expression)], timeZone: String): Expression = {
    val told = values.filterNot(_._2.dataType == BinaryType).map { case (name, value) =>
      val label = Literal(UTF8String.fromString(s"$name="), StringType)
      Concat(Seq(label, ToPrettyString(value, Some(timeZone))))
    }
    ConcatWs(Literal(UTF8String.fromString(", "), StringType) +: told)
  }
}
