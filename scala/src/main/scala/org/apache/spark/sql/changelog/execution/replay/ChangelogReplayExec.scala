// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.{
  KeyStateEncoderSpec, PrefixKeyScanStateEncoderSpec, StateStore
}
import org.apache.spark.sql.execution.{GroupedIterator, SparkPlan}
import org.apache.spark.sql.types._
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.expiry.EntryTimes
import org.apache.spark.sql.changelog.execution.session.{SessionState, SessionStateWriter}
import org.apache.spark.sql.changelog.execution.{RowOrder, StateColumns}
import org.apache.spark.sql.changelog.identity.EntryPlacement

/**
 * Keeps the rows of each partition, and emits the old and the new rows of changed partitions.
 *
 * {{{
 *   state          in              out
 *   a 1, b 1       +I a 2          +I a 1, +I a 2      the new version of partition a
 *                                  -D a 1              the old version
 * }}}
 *
 *   - in: any changes, sorted by partition
 *   - out: for each changed partition, its rows after the batch with kind `+I`, and its rows before the batch
 *     with kind `-D`; each version in the same order in every batch
 *   - state: the rows of each partition, each with its count; see [[ReplayLayout]]
 *   - law: an operator that computes partitions independently, run over `out` with the kind as a further
 *     partition column, gives the partition's new result as `+I` and its old result as `-D`
 *
 * A touched partition is read in full and held in memory.
 */
case class ChangelogReplayExec(
    layout: ReplayLayout,
    sessionColumn: Option[Attribute],
    override val dropsLate: Boolean,
    override val emitsClosed: Boolean,
    inputKind: Option[Attribute],
    opening: Option[Attribute],
    outputKind: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    placedBy: Seq[Attribute],
    child: SparkPlan)
    extends SessionStateWriter {

  override def shortName: String = "changelogReplay"

  override def simpleString(maxFields: Int): String = {
    val partition = truncatedString(layout.partition, "[", ", ", "]", maxFields)
    val order = truncatedString(layout.order, "[", ", ", "]", maxFields)
    s"$nodeName(partition=$partition, order=$order)"
  }

  override def output: Seq[Attribute] = layout.columns ++ opening :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(opening.toSeq :+ outputKind)

  /** The versions are emitted in the order of their kinds, so that no node above has to sort by kind. */
  override def outputOrdering: Seq[SortOrder] =
    if (emitsClosed) Nil
    else (layout.partition :+ outputKind).map(SortOrder(_, Ascending)) ++ layout.rowOrder

  override def requiredChildOrdering: Seq[Seq[SortOrder]] =
    Seq(layout.partition.map(SortOrder(_, Ascending)))

  override def timedColumns: Seq[Attribute] = layout.partition ++ sessionColumn

  /** Whether rows expire with their session, not with their partition. */
  private def endsSessions: Boolean =
    eventTimeBound.exists(bound => sessionColumn.exists(_.exprId == bound.column.exprId))

  override def stateKeySchema: StructType = layout.keySchema

  override def stateValueSchema: StructType = layout.valueSchema

  override def placement: EntryPlacement =
    EntryPlacement.byColumns(placedBy, layout.key, first = 0)

  override def keyEncoder: KeyStateEncoderSpec =
    PrefixKeyScanStateEncoderSpec(stateKeySchema, layout.numPrefixColumns)

  override protected def counters: Seq[(String, String)] =
    super.counters :+
      "numReplayedPartitions" -> "number of recomputed partitions"

  override protected def entryTimes: Option[EntryTimes] =
    timesOfKey(layout.key).map(times =>
      if (endsSessions) SessionState.times(times, isVisible) else times)

  private def isVisible(value: UnsafeRow): Boolean = value.getLong(0) > 0

  override protected def isNoOpWithoutInput: Boolean =
    opening.isEmpty && !endsSessions && eventTimeBound.isEmpty && closingBound.isEmpty

  override protected def processPartition(
      store: StateStore,
      rows: Iterator[InternalRow]): Iterator[InternalRow] = {
    val state = new ReplayStateManager(layout, store)
    val processor = new ChangelogReplayProcessor(
      state,
      GenerateOrdering.generate(layout.rowOrder, layout.key),
      unmatchedRetractions(),
      StateColumns.keyText(layout.key, _),
      // rows of a partition expire together; otherwise the old version would differ from the emitted rows
      refreshes = ttls.exists(_ > 0))
    val keyOf = UnsafeProjection.create(layout.keyOfRow, child.output)
    val kindOrdinal = RowKind.ordinal(inputKind, child.output)
    val versions = new PartitionVersions
    val metrics = changeMetrics

    // without a group, the empty partition also has a version
    val isFirst = opening.isDefined && !state.hasVersion
    val sessions =
      if (endsSessions) {
        Some(
          new SessionState(
            layout.key,
            layout.numPrefixColumns,
            sessionColumn.get,
            store,
            isVisible))
      } else None
    val isLate: UnsafeRow => Boolean = sessions.map(lateSessions).getOrElse(_ => false)
    val inTime = if (endsSessions) rows else withoutLate(rows, child.output)
    val partitions =
      if (isFirst && !inTime.hasNext) Iterator.single(Iterator.empty[InternalRow])
      else GroupedIterator(inTime, layout.partition, child.output).map(_._2)
    val versionsOfAll = partitions.flatMap { changes =>
      val (updatedBefore, removedBefore) = (state.numUpdated, state.numRemoved)
      changes.foreach { change =>
        val sign = RowKind.sign(RowKind.at(change, kindOrdinal))
        val row = keyOf(change)
        if (!isLate(row)) processor.add(row, sign)
      }
      val replayed = processor.end(isRead = !emitsClosed)
      if (opening.isDefined) state.setHasVersion()
      metrics.updated += state.numUpdated - updatedBefore
      metrics.removed += state.numRemoved - removedBefore
      if (replayed.isEmpty && !isFirst) Iterator.empty
      else versions.both(replayed, isFirst)
    }
    lazy val over = rowsOver(store, sessions).flatMap { case (row, count) =>
      metrics.removed += 1
      versions.closed(row, count)
    }
    if (emitsClosed) versionsOfAll ++ over
    else {
      CompletionIterator[InternalRow, Iterator[InternalRow]](versionsOfAll, over.foreach(_ => ()))
    }
  }

  /** Returns the current version of each partition, in the partition order of the input. */
  override protected def storedResult(store: StateStore): Iterator[InternalRow] = {
    val state = new ReplayStateManager(layout, store)
    val rowOrder = RowOrder.total(GenerateOrdering.generate(layout.rowOrder, layout.key))
    val prefix = layout.key.take(layout.numPrefixColumns)
    val partitionOrder = GenerateOrdering.generate(prefix.map(SortOrder(_, Ascending)), prefix)
    val versions = new PartitionVersions
    def rowsOf(partition: UnsafeRow): Array[ReplayedRow] = {
      val rows = Array.newBuilder[ReplayedRow]
      state.foreachIn(partition)((row, count) => rows += new ReplayedRow(row, count))
      rows.result().sortWith((left, right) => rowOrder.compare(left.row, right.row) < 0)
    }
    val partitions = state.partitions.sortWith(partitionOrder.lt)
    // without a group, the empty partition also has a version
    if (opening.isDefined && partitions.isEmpty) versions.now(Array.empty)
    else partitions.iterator.flatMap(partition => versions.now(rowsOf(partition)))
  }

  /** Removes and returns expired rows, which no further change can reach, with their counts. */
  private def rowsOver(
      store: StateStore,
      sessions: Option[SessionState]): Iterator[(UnsafeRow, Long)] =
    sessions match {
      case Some(sessions) =>
        removeEnded(store, sessions).map(entry => (entry.key, entry.value.getLong(0)))
      case None =>
        expiredEntries(store).map { entry =>
          val row = entry.key.copy()
          val count = entry.value.getLong(0)
          store.remove(row)
          (row, count)
        }
    }

  /** Emits both versions of each partition. */
  private class PartitionVersions {
    private val kind = Literal(RowKind.Insert)
    private val openings = opening.toSeq
    private val rowOf = UnsafeProjection.create(
      (layout.columns ++ openings.map(_ => Literal(false))) :+ kind,
      layout.key)
    private val openingRow = UnsafeProjection
      .create(
        layout.columns.map(column => Literal(null, column.dataType)) ++
          openings.map(_ => Literal(true)) :+ kind)
      .apply(InternalRow.empty)
    private val kindOrdinal = output.size - 1
    private val metrics = changeMetrics
    private val numReplayedPartitions = longMetric("numReplayedPartitions")

    /**
     * Returns the new and the old version.
     *
     * @param isFirst
     *   whether no version was emitted before
     */
    def both(rows: Array[ReplayedRow], isFirst: Boolean): Iterator[InternalRow] = {
      numReplayedPartitions += 1
      val before =
        if (isFirst) Iterator.empty else version(rows, _.timesBefore, RowKind.Delete)
      now(rows) ++ before
    }

    /** Returns the new version of a partition. */
    def now(rows: Array[ReplayedRow]): Iterator[InternalRow] =
      version(rows, _.timesAfter, RowKind.Insert)

    /** Returns the copies of an expired row, to emit once. */
    def closed(row: UnsafeRow, count: Long): Iterator[InternalRow] =
      version(Array(new ReplayedRow(row, count)), _.timesBefore, RowKind.Insert)

    private def version(
        rows: Array[ReplayedRow],
        times: ReplayedRow => Long,
        kind: Byte): Iterator[InternalRow] = {
      val opened = openings.iterator.map(_ => openingRow)
      val copies = rows.iterator.flatMap { replayed =>
        val count = times(replayed)
        if (count == 0) Iterator.empty
        else {
          val row = rowOf(replayed.row)
          Iterator.fill(count.toInt)(row)
        }
      }
      (opened ++ copies).map { row =>
        row.setByte(kindOrdinal, kind)
        metrics.emit(kind)
        row
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogReplayExec =
    copy(child = newChild)
}

/**
 * The state columns of rows, and the order of emitted rows.
 *
 * {{{
 *   key    partition columns | other columns
 *          table             | all columns         without partition columns; table 1 has a single entry,
 *                                                  which exists once a version was emitted
 *   value  count
 * }}}
 *
 * @param partition
 *   the columns by which rows are stored
 * @param columns
 *   the columns of a row, as emitted
 * @param order
 *   the required order
 */
final case class ReplayLayout(
    partition: Seq[Attribute],
    columns: Seq[Attribute],
    order: Seq[SortOrder]) {
  private val table = AttributeReference("table", IntegerType, nullable = false)()
  // a state key needs a column after its prefix, even for rows without further columns
  private val nothing = AttributeReference("row", IntegerType, nullable = false)()

  private val others: Seq[Attribute] =
    columns.filterNot(column => partition.exists(_.exprId == column.exprId))

  private val prefix: Seq[Attribute] = if (partition.isEmpty) Seq(table) else partition

  /** The columns of the state key. */
  val key: Seq[Attribute] = prefix ++ (if (others.isEmpty) Seq(nothing) else others)

  val numPrefixColumns: Int = prefix.size

  /** The state key of a row, over the row's columns. */
  val keyOfRow: Seq[Expression] = key.map { column =>
    if (column.exprId == table.exprId || column.exprId == nothing.exprId) Literal(0) else column
  }

  /** The state key of the entry that records an emitted version. */
  val keyOfVersion: Seq[Expression] = key.map { column =>
    if (column.exprId == table.exprId) Literal(1) else Literal(null, column.dataType)
  }

  /** Returns whether a state key belongs to a row. */
  def isRow(key: UnsafeRow): Boolean = partition.nonEmpty || key.getInt(0) == 0

  /** The order of a partition's rows. */
  val rowOrder: Seq[SortOrder] = RowOrder(order, others)

  def keySchema: StructType = StateColumns.ofKey(key)

  def valueSchema: StructType = StateColumns(Seq("count" -> LongType))
}
