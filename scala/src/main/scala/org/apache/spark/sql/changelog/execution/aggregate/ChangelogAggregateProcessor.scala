// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.{StateColumns, UnmatchedRetractions}

/**
 * Merges a batch's changes into each group and returns the group's old and new result.
 *
 * Call for each group: [[begin]], [[add]] with combined buffers, [[addValue]] for each counted value, then
 * [[end]]. Afterwards [[before]] and [[after]] hold the group's old and new result row, null for a missing
 * group.
 *
 * @param layout
 *   the columns of groups and state
 * @param input
 *   the columns of combined rows
 * @param results
 *   the result columns, over group columns and results of functions
 * @param state
 *   the partition's groups
 */
private[aggregate] class ChangelogAggregateProcessor(
    layout: AggregateLayout,
    input: Seq[Attribute],
    results: Seq[NamedExpression],
    state: AggregateStateManager,
    unmatched: UnmatchedRetractions) {
  private val imperative = new ImperativeBuffers(layout, input)
  private val retracts = layout.rowCount.isDefined
  private val isGlobal = layout.grouping.isEmpty
  private val rowCountOrdinal =
    layout.rowCount
      .map(count => layout.buffers.indexWhere(_.exprId == count.exprId))
      .getOrElse(-1)

  // a stored record holds the buffers, then heads, which no expression reads
  private val record: Seq[Attribute] = layout.buffers ++
    layout.groupSchema.drop(layout.buffers.size).map { field =>
      AttributeReference(field.name, field.dataType)()
    }
  private val initial: UnsafeRow = UnsafeProjection
    .create(
      ImperativeBuffers.initialValues(layout.buffered) ++
        record.drop(layout.buffers.size).map(column => Literal(null, column.dataType)))
    .apply(InternalRow.empty)

  private val exactBuffers: Seq[(DataType, Int)] =
    layout.buffers.map(_.dataType).zipWithIndex.filter { case (dataType, _) =>
      dataType.isInstanceOf[IntegralType] || dataType.isInstanceOf[DecimalType]
    }

  /** The names of imperative functions' buffer columns after merging. */
  private val mergedElsewhere =
    AttributeMap(imperative.bufferAttributes.map(column => column -> column.newInstance()))
  private val mergedColumns: Seq[Expression] = {
    val imperativeColumns = imperative.bufferAttributes.map(mergedElsewhere).iterator
    layout.buffered.map(_.aggregateFunction).flatMap {
      case function: DeclarativeAggregate => function.mergeExpressions
      case other => other.aggBufferAttributes.map(_ => imperativeColumns.next())
    }
  }
  private val merge = UnsafeProjection.create(
    mergedColumns,
    record ++ input ++ imperative.bufferAttributes.map(mergedElsewhere))
  // two projections in turn, because a projection must not read the row that it writes
  private lazy val mergeMore = Array.fill(2)(
    UnsafeProjection.create(
      mergedColumns,
      layout.buffers ++ input ++ imperative.bufferAttributes.map(mergedElsewhere)))
  private var turn = 0
  private val buffersOf = UnsafeProjection.create(layout.buffers, record)

  private val extrema = layout.extrema.toArray
  private val bestValues = new GenericInternalRow(extrema.length)
  private val bestOf = extrema.map { extremum =>
    layout.values(extremum.valueIndex).dataType match {
      case pair: StructType if extremum.ordersAnother =>
        val valueOf = InternalRow.getAccessor(pair.last.dataType)
        (best: Any) => if (best == null) null else valueOf(best.asInstanceOf[InternalRow], 1)
      case _ => (best: Any) => best
    }
  }
  private val resultBefore = resultProjection(record)
  private val resultAfter = resultProjection(layout.buffers)

  private val merged = new JoinedRow
  private val mergedWithObjects = new JoinedRow
  private val functionResults = new JoinedRow
  private val resultsWithObjects = new JoinedRow
  private val resultInput = new JoinedRow

  private var group: UnsafeRow = _
  private val kept = UnsafeRow.createFromByteArray(initial.getSizeInBytes, record.size)
  private var oldBuffers: UnsafeRow = _
  // null until the group's first change
  private var newBuffers: UnsafeRow = _
  private var countBefore = 1L
  private var wasStored = false
  private var isStored = false

  /** The group's result before the batch, with kind `+I`; null if the group did not exist. */
  var before: UnsafeRow = _

  /** The group's result after the batch, with kind `+I`; null if the group no longer exists. */
  var after: UnsafeRow = _

  /** Starts a group with its stored state. */
  def begin(key: UnsafeRow): Unit = {
    group = key
    val stored = state.load(key)
    wasStored = stored != null
    oldBuffers =
      if (!wasStored) initial
      else if (extrema.isEmpty) stored
      else {
        // the store may reuse the row before the merge
        kept.copyFrom(stored)
        kept
      }
    newBuffers = null
    imperative.load(stored)
    countBefore = if (retracts) oldBuffers.getLong(rowCountOrdinal) else 1L
    before =
      if (!wasStored || (countBefore <= 0 && !isGlobal)) null
      else result(resultBefore, oldBuffers)
  }

  /** Merges combined buffers into the group's. */
  def add(combined: InternalRow): Unit = {
    imperative.merge(combined)
    imperative.serialize()
    newBuffers = if (newBuffers == null) {
      merge(mergedWithObjects(merged(oldBuffers, combined), imperative.serialized))
    } else {
      turn = 1 - turn
      mergeMore(turn)(mergedWithObjects(merged(newBuffers, combined), imperative.serialized))
    }
  }

  /** Adds to the count of one of the group's values. */
  def addValue(valueIndex: Int, value: Any, count: Long): Unit =
    state.values(valueIndex).add(value, count)

  /** Finishes the group: writes its state and sets [[after]]. */
  def end(): Unit = {
    if (newBuffers == null) newBuffers = buffersOf(oldBuffers)
    else imperative.load(newBuffers)
    if (retracts) countUnmatched(countBefore, newBuffers.getLong(rowCountOrdinal))
    val count = if (retracts) newBuffers.getLong(rowCountOrdinal) else 1L
    if (count == 0 && !isGlobal && isEmptyGroup) {
      after = null
      isStored = false
      if (wasStored) state.remove()
    } else {
      state.values.foreach(_.complete())
      after = if (count <= 0 && !isGlobal) null else result(resultAfter, newBuffers)
      isStored = true
      state.save(newBuffers)
    }
  }

  /**
   * Returns whether a group with the count 0 has no rows. An unmatched retraction and a row also have the count
   * 0 together. Only exact buffers are compared with 0, because others may keep a rounding error.
   */
  private def isEmptyGroup: Boolean =
    state.heads.forall(head => head.size == 0 && head.numTailEntries == 0) &&
      exactBuffers.forall { case (dataType, ordinal) =>
        newBuffers.get(ordinal, dataType) match {
          case null => true
          case decimal: Decimal => decimal.toJavaBigDecimal.signum == 0
          case number: Number if number.longValue == 0 => true
          case number => number == initial.get(ordinal, dataType)
        }
      }

  /** Returns the stored result of a group; null if the group does not exist. */
  def resultOf(key: UnsafeRow): UnsafeRow = {
    begin(key)
    before
  }

  /** Whether the group's record was written in this batch. */
  def updated: Boolean = isStored

  /** Whether the group's record was removed in this batch. */
  def removed: Boolean = wasStored && !isStored

  private def countUnmatched(before: Long, after: Long): Unit =
    unmatched.note(before, after, StateColumns.keyText(layout.grouping, group))

  private def result(projection: UnsafeProjection, buffers: UnsafeRow): UnsafeRow = {
    var index = 0
    while (index < extrema.length) {
      bestValues.update(index, bestOf(index)(state.heads(index).best))
      index += 1
    }
    val results = functionResults(buffers, resultsWithObjects(bestValues, imperative.results))
    projection(resultInput(group, results))
  }

  /** Returns a projection to the results, over group columns, a record that starts with the buffers, and extrema. */
  private def resultProjection(record: Seq[Attribute]): UnsafeProjection = {
    val evaluated = AttributeMap(layout.buffered.collect {
      case call if call.aggregateFunction.isInstanceOf[DeclarativeAggregate] =>
        val function = call.aggregateFunction.asInstanceOf[DeclarativeAggregate]
        call.resultAttribute -> function.evaluateExpression
    })
    val expressions = results.map(_.transform {
      case column: AttributeReference if evaluated.contains(column) => evaluated(column)
    })
    UnsafeProjection.create(
      expressions :+ Literal(RowKind.Insert),
      layout.grouping ++ record ++ layout.extrema.map(_.result) ++ imperative.resultAttributes)
  }
}
