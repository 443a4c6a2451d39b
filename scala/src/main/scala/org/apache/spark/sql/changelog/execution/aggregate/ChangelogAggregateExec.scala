// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.{
  KeyStateEncoderSpec, PrefixKeyScanStateEncoderSpec, StateStore
}
import org.apache.spark.sql.execution.{PartitioningPreservingUnaryExecNode, SparkPlan}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.UpdateKind
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.execution._
import org.apache.spark.sql.changelog.execution.expiry.EntryTimes
import org.apache.spark.sql.changelog.identity.EntryPlacement

/**
 * Groups a changelog and emits each group's change.
 *
 *   - in: one row of combined buffers per group of the batch. Over retractable `min` or `max`: one such row per
 *     group and task, and rows of changed values (see [[PlanChangelogAggregate]])
 *   - out: `+I` for a new group, `-U +U` for a changed result, `-D` for an emptied group
 *   - state: the buffers of each group, the best values for `min` and `max`, and the values behind these if the
 *     input retracts; see [[AggregateLayout]]. An emptied group leaves no state
 *   - law: replaying `out` into an empty table gives the batch query over all input
 *
 * A group with an unchanged result emits nothing. Without group columns there is always exactly one row, even
 * over empty input, as in batch.
 *
 * @param layout
 *   the state of a group
 * @param resultExpressions
 *   the result columns, over group columns and function results
 */
case class ChangelogAggregateExec(
    layout: AggregateLayout,
    resultExpressions: Seq[NamedExpression],
    updateKind: UpdateKind,
    override val emitsClosed: Boolean,
    outputKind: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    child: SparkPlan)
    extends UnaryChangelogStateWriter
    with PartitioningPreservingUnaryExecNode {

  override def shortName: String = "changelogAggregate"

  override def simpleString(maxFields: Int): String = {
    val keys = truncatedString(layout.grouping, "[", ", ", "]", maxFields)
    val results = truncatedString(resultExpressions, "[", ", ", "]", maxFields)
    s"$nodeName(keys=$keys, results=$results, updates=$updateKind)"
  }

  override protected def outputExpressions: Seq[NamedExpression] = resultExpressions :+ outputKind

  override def output: Seq[Attribute] = outputExpressions.map(_.toAttribute)

  override def producedAttributes: AttributeSet = AttributeSet(
    layout.buffered.map(_.resultAttribute) ++ layout.extrema.map(_.result) :+ outputKind)

  override def placedBy: Seq[Attribute] = layout.grouping

  override def requiredChildOrdering: Seq[Seq[SortOrder]] =
    Seq(if (layout.hasExtrema) RowsByKey.order(layout.grouping) else Nil)

  override def timedColumns: Seq[Attribute] = layout.grouping

  override def stateKeySchema: StructType = layout.keySchema

  override def stateValueSchema: StructType = layout.valueSchema

  override def placement: EntryPlacement =
    EntryPlacement.byColumns(layout.grouping, first = if (layout.hasExtrema) 1 else 0)

  override def keyEncoder: KeyStateEncoderSpec =
    if (layout.hasExtrema) {
      PrefixKeyScanStateEncoderSpec(stateKeySchema, numColsPrefixKey = 1 + layout.grouping.size)
    } else super.keyEncoder

  override protected def doExecute(): RDD[InternalRow] = {
    if (layout.hasExtrema) ValueCombining.note(getStateInfo, child, worth = layout.values.size)
    super.doExecute()
  }

  override protected def entryTimes: Option[EntryTimes] = timesOfKey(layout.keyColumns)

  override protected def isNoOpWithoutInput: Boolean =
    layout.grouping.nonEmpty && eventTimeBound.isEmpty

  override protected def processPartition(
      store: StateStore,
      rows: Iterator[InternalRow]): Iterator[InternalRow] = {
    val processor = processorOf(store)
    val changes = withoutLate(rows, child.output)
    if (layout.hasExtrema) new GroupsOfRows(processor, store, changes)
    else new SingleRows(processor, store, changes)
  }

  override protected def storedResult(store: StateStore): Iterator[InternalRow] = {
    val processor = processorOf(store)
    val group = groupOf
    store
      .iterator()
      .filter(entry => isGroup(entry.key))
      .map(entry => processor.resultOf(group(entry.key)))
      .filter(_ != null)
  }

  private def processorOf(store: StateStore): ChangelogAggregateProcessor = {
    val headSize = conf.getConf(ChangelogConf.AGGREGATE_HEAD_SIZE)
    new ChangelogAggregateProcessor(
      layout,
      child.output,
      resultExpressions,
      new AggregateStateManager(layout, headSize, store),
      unmatchedRetractions())
  }

  /** Returns the group of an entry. */
  private def groupOf: UnsafeProjection =
    UnsafeProjection.create(layout.grouping, layout.keyColumns)

  /** Returns whether an entry is a group's record, and not one of its values. */
  private def isGroup(key: InternalRow): Boolean = !layout.hasExtrema || key.getInt(0) == 0

  /** Emits the change of each group, then expires groups below the watermark. */
  private abstract class Groups(processor: ChangelogAggregateProcessor, store: StateStore)
      extends DifferenceIterator(
        output.size - 1,
        updateKind == UpdateKind.BeforeAndAfter,
        changeMetrics) {
    private val metrics = changeMetrics

    private lazy val over = expiredEntries(store)
    private lazy val group = groupOf
    private var closed: UnsafeRow = _

    override protected def before: UnsafeRow = if (emitsClosed) null else processor.before

    override protected def after: UnsafeRow = if (emitsClosed) closed else processor.after

    /** Moves to the next changed group. Returns false after the last group. */
    protected def nextGroup(): Boolean

    override protected def nextKey(): Boolean = nextGroup() || nextClosed()

    /** Removes expired groups, up to the next group to emit. */
    private def nextClosed(): Boolean = {
      closed = null
      while (closed == null && over.hasNext) {
        val entry = over.next()
        if (emitsClosed && isGroup(entry.key)) closed = processor.resultOf(group(entry.key))
        store.remove(entry.key)
        metrics.removed += 1
      }
      closed != null
    }

    protected def end(): Unit = {
      processor.end()
      if (processor.updated) metrics.updated += 1
      else if (processor.removed) metrics.removed += 1
    }
  }

  /** Processes groups with a single input row each, in any order. */
  private class SingleRows(
      processor: ChangelogAggregateProcessor,
      store: StateStore,
      rows: Iterator[InternalRow])
      extends Groups(processor, store) {
    private val key = UnsafeProjection.create(layout.grouping, child.output)

    override protected def nextGroup(): Boolean = rows.hasNext && {
      val row = rows.next()
      processor.begin(key(row))
      processor.add(row)
      end()
      true
    }
  }

  /** Processes groups with several input rows, sorted by group: rows of buffers and rows of changed values. */
  private class GroupsOfRows(
      processor: ChangelogAggregateProcessor,
      store: StateStore,
      rows: Iterator[InternalRow])
      extends Groups(processor, store) {
    private var nothingChanged = !rows.hasNext
    private val groups = RowsByKey(rows, layout.grouping, child.output)
    private val tableOrdinal = layout.grouping.size
    private val valueOf =
      layout.values
        .map(value => InternalRow.getAccessor(value.dataType, nullable = false))
        .toArray
    private val countOrdinal = child.output.indexWhere(_.exprId == layout.inputRowCount.exprId)

    override protected def nextGroup(): Boolean =
      if (groups.hasNext) {
        val (key, changes) = groups.next()
        processor.begin(key.asInstanceOf[UnsafeRow])
        changes.foreach { row =>
          if (row.getInt(tableOrdinal) == 0) processor.add(row)
          // a row of a table has NULL in other tables' values; a row of an uncombined change may have all its
          // values
          var index = 0
          while (index < valueOf.length) {
            val ordinal = tableOrdinal + 1 + index
            if (!row.isNullAt(ordinal)) {
              val value = InternalRow.copyValue(valueOf(index)(row, ordinal))
              processor.addValue(index, value, row.getLong(countOrdinal))
            }
            index += 1
          }
        }
        end()
        true
      } else if (nothingChanged && layout.grouping.isEmpty) {
        // without any input there is still exactly one row
        nothingChanged = false
        processor.begin(new UnsafeRow(0))
        end()
        true
      } else false
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogAggregateExec =
    copy(child = newChild)
}
