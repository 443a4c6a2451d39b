// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._

/**
 * Merges and evaluates functions that are methods rather than expressions, such as `collect_list`
 * or a Scala `Aggregator`. Their buffers may be objects, which are bytes in a record.
 *
 * For each group: [[load]], which makes [[results]] those of the stored buffers, then [[merge]] for
 * each combined row; after [[serialize]], [[serialized]] holds the columns to store. What they give
 * is known when they are loaded again: an object that has grown, as the hash set of `collect_set`
 * has, may list its elements otherwise than one that is read, and what is given must be what the
 * next batch takes back.
 *
 * @param layout
 *   the columns of groups and state
 * @param input
 *   the columns of combined rows
 */
private[aggregate] final class ImperativeBuffers(layout: AggregateLayout, input: Seq[Attribute]) {
  // each call with the position of its first column among all buffer columns
  private val calls = layout.buffered
    .zip(layout.buffered.scanLeft(0)(_ + _.aggregateFunction.aggBufferAttributes.size))
    .filter { case (call, _) => call.aggregateFunction.isInstanceOf[ImperativeAggregate] }
  private val sizes = calls.map { case (call, _) =>
    call.aggregateFunction.aggBufferAttributes.size
  }
  private val offsets = sizes.scanLeft(0)(_ + _)

  // the attributes are those of the layout: a function makes new ones when it gets to an executor
  private val stored = functions(position => position)
  private val combined = functions { position =>
    input.indexWhere(_.exprId == layout.inputBuffers(position).exprId)
  }

  /** The functions' result columns. */
  val resultAttributes: Seq[Attribute] = calls.map(_._1.resultAttribute)

  /** The buffer columns in [[serialized]]. */
  val bufferAttributes: Seq[Attribute] = calls.zip(sizes).flatMap { case ((_, position), size) =>
    layout.buffers.slice(position, position + size)
  }

  val results = new GenericInternalRow(calls.size)
  val serialized = new GenericInternalRow(offsets.last)
  private val buffers = new GenericInternalRow(offsets.last)

  private def functions(ordinalOf: Int => Int): Array[ImperativeAggregate] =
    calls
      .zip(offsets)
      .map { case ((call, position), offset) =>
        call.aggregateFunction
          .asInstanceOf[ImperativeAggregate]
          .withNewMutableAggBufferOffset(offset)
          .withNewInputAggBufferOffset(ordinalOf(position))
      }
      .toArray

  /** Takes the buffers from a stored record, or empty ones from null. */
  def load(record: InternalRow): Unit = {
    stored.foreach(_.initialize(buffers))
    if (record != null) stored.foreach(_.merge(buffers, record))
    evaluate()
  }

  /** Merges in a combined row. */
  def merge(row: InternalRow): Unit = combined.foreach(_.merge(buffers, row))

  /** Makes [[serialized]] what is to be stored: bytes in place of objects. */
  def serialize(): Unit = if (calls.nonEmpty) {
    System.arraycopy(buffers.values, 0, serialized.values, 0, buffers.numFields)
    stored.foreach {
      case typed: TypedImperativeAggregate[_] => typed.serializeAggregateBufferInPlace(serialized)
      case _ =>
    }
  }

  private def evaluate(): Unit = {
    var index = 0
    while (index < stored.length) {
      results.update(index, stored(index).eval(buffers))
      index += 1
    }
  }
}

private[aggregate] object ImperativeBuffers {

  /** The buffer columns of `calls` over no input, as constants. */
  def initialValues(calls: Seq[AggregateExpression]): Seq[Expression] =
    calls.map(_.aggregateFunction).flatMap {
      case function: DeclarativeAggregate => function.initialValues
      case function =>
        val own = function.asInstanceOf[ImperativeAggregate].withNewMutableAggBufferOffset(0)
        val buffer = new GenericInternalRow(own.aggBufferAttributes.size)
        own.initialize(buffer)
        own match {
          case typed: TypedImperativeAggregate[_] => typed.serializeAggregateBufferInPlace(buffer)
          case _ =>
        }
        own.aggBufferAttributes.zipWithIndex.map { case (column, ordinal) =>
          Literal.create(buffer.get(ordinal, column.dataType), column.dataType)
        }
    }
}
