// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.execution.StateColumns
import org.apache.spark.sql.changelog.execution.aggregate.signed.SignedFunction
import org.apache.spark.sql.changelog.inference.DescribeNode

/**
 * The smallest or largest value of a group, over an input with retractions.
 *
 * @param valueIndex
 *   the index of the value among the layout's values
 * @param largest
 *   whether the function returns the largest value
 * @param ordersAnother
 *   whether values are pairs of a compared value and a result, as for `max_by`
 * @param comparedAs
 *   the values' type with collations; the state holds the values as bytes
 * @param result
 *   the function's result column
 */
final case class Extremum(
    valueIndex: Int,
    largest: Boolean,
    ordersAnother: Boolean,
    comparedAs: DataType,
    result: Attribute)

/**
 * The state of a group aggregate: contents and columns.
 *
 * Functions whose buffers merge by addition are `buffered`: Spark's own over insert-only input,
 * [[SignedFunction]]s over retracting input. `min` and `max` over retracting input are `extrema` over counted
 * `values`. Several functions of the same argument share its counts.
 *
 * {{{
 *   key    group columns                       | table, group columns, one column per value
 *   value  buffers of all buffered functions   | ditto, head and tail size per extremum, count
 *          (no extrema: no other columns)      | (only `count` is set for a value of a tail)
 * }}}
 *
 * @param grouping
 *   the group columns
 * @param buffered
 *   functions with mergeable buffers
 * @param rowCount
 *   the buffer column with a group's number of rows; empty over insert-only input, where no group disappears
 * @param values
 *   the arguments of all extrema, NULL if a FILTER excludes the row
 * @param extrema
 *   `min` and `max` over retracting input
 */
final case class AggregateLayout(
    grouping: Seq[Attribute],
    buffered: Seq[AggregateExpression],
    rowCount: Option[Attribute],
    values: Seq[NamedExpression],
    extrema: Seq[Extremum]) {

  /** Buffer columns of all buffered functions, in order. */
  val buffers: Seq[AttributeReference] =
    buffered.flatMap(_.aggregateFunction.aggBufferAttributes)

  /** The columns of the buffers in the operator's input. */
  val inputBuffers: Seq[AttributeReference] =
    buffered.flatMap(_.aggregateFunction.inputAggBufferAttributes)

  /** The number of a state entry's table. Table 0 holds the groups, the others hold values. */
  val table: AttributeReference =
    AttributeReference("table", IntegerType, nullable = false)()

  /** The number of a batch's rows with a given value, in rows of a value's table. */
  def inputRowCount: Attribute = inputBuffers(buffers.indexWhere(_.exprId == rowCount.get.exprId))

  def hasExtrema: Boolean = extrema.nonEmpty

  def keyColumns: Seq[Attribute] =
    if (hasExtrema) table +: (grouping ++ values.map(_.toAttribute)) else grouping

  def keySchema: StructType = StateColumns.ofKey(keyColumns)

  def valueSchema: StructType =
    if (hasExtrema) StateColumns(Seq("count" -> LongType, "group" -> groupSchema))
    else groupSchema

  /** The state columns of a group. */
  def groupSchema: StructType = {
    val heads = extrema.flatMap { extremum =>
      val value = values(extremum.valueIndex).name
      val name = s"${if (extremum.largest) "max" else "min"}($value)"
      Seq(s"$name.head" -> headType(extremum), s"$name.tail" -> LongType)
    }
    StateColumns(buffered.flatMap(AggregateLayout.bufferColumns) ++ heads)
  }

  /** The type of the head: the best values of an extremum with their counts, best first. */
  def headType(extremum: Extremum): ArrayType = {
    val value = StructField("value", values(extremum.valueIndex).dataType, nullable = false)
    ArrayType(
      StructType(Seq(value, StructField("count", LongType, nullable = false))),
      containsNull = false)
  }
}

object AggregateLayout {

  /** Names a function's buffer columns after the call, so that the state schema check notices another call. */
  def bufferColumns(call: AggregateExpression): Seq[(String, DataType)] = {
    val function = call.aggregateFunction match {
      case signed: SignedFunction => signed.name
      case other => DescribeNode.expression(other)
    }
    val filter = call.filter.map(filter => s" where ${DescribeNode.expression(filter)}").mkString
    // for a DISTINCT call, the filter is part of the name of its values
    val name = if (call.isDistinct) s"DISTINCT $function" else s"$function$filter"
    val columns = call.aggregateFunction.aggBufferAttributes
    columns.map { column =>
      val suffix = if (columns.size == 1) "" else s".${column.name}"
      s"$name$suffix" -> column.dataType
    }
  }
}

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
