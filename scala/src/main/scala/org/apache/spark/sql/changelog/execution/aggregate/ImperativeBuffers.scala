// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._

/**
 * Merges and evaluates functions implemented by methods, such as `collect_list` or a Scala `Aggregator`. Their
 * buffers may be objects, stored as bytes.
 *
 * Call for each group: [[load]], which sets [[results]] to the results of the stored buffers, then [[merge]]
 * for each combined row. After [[serialize]], [[serialized]] holds the columns to store. New results are known
 * only after another [[load]]. A grown object, such as the hash set of `collect_set`, may list its elements in
 * another order than a deserialized object. The next batch must retract the exact result of this batch.
 *
 * @param layout
 *   the columns of groups and state
 * @param input
 *   the columns of combined rows
 */
private[aggregate] final class ImperativeBuffers(layout: AggregateLayout, input: Seq[Attribute]) {
  // each call with the index of its first buffer column
  private val calls = layout.buffered
    .zip(layout.buffered.scanLeft(0)(_ + _.aggregateFunction.aggBufferAttributes.size))
    .filter { case (call, _) => call.aggregateFunction.isInstanceOf[ImperativeAggregate] }
  private val sizes = calls.map { case (call, _) =>
    call.aggregateFunction.aggBufferAttributes.size
  }
  private val offsets = sizes.scanLeft(0)(_ + _)

  // buffer columns come from the layout, because a deserialized function creates new attributes
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

  /** Reads the buffers of a stored record, or empty buffers for null, and evaluates the functions. */
  def load(record: InternalRow): Unit = {
    stored.foreach(_.initialize(buffers))
    if (record != null) stored.foreach(_.merge(buffers, record))
    evaluate()
  }

  /** Merges a combined row into the buffers. */
  def merge(row: InternalRow): Unit = combined.foreach(_.merge(buffers, row))

  /** Sets [[serialized]] to the columns to store, with bytes in place of objects. */
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

  /** Returns the buffer columns of `calls` over empty input, as constants. */
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
