// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.session

import java.util.{ArrayDeque, LinkedHashMap}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.{
  KeyStateEncoderSpec, PrefixKeyScanStateEncoderSpec, StateStore
}
import org.apache.spark.sql.execution.{GroupedIterator, SparkPlan}
import org.apache.spark.sql.types.{IntegerType, StructType}
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.{MergedSessions, SparkAggregates}
import org.apache.spark.sql.changelog.execution.StateColumns
import org.apache.spark.sql.changelog.execution.aggregate.AggregateLayout
import org.apache.spark.sql.changelog.execution.expiry.EntryTimes
import org.apache.spark.sql.changelog.execution.replay.ReplayLayout
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
import org.apache.spark.sql.changelog.plans.ChangelogReplay

/**
 * Merges a batch's rows into the sessions that overlap with them, over insert-only input.
 *
 * {{{
 *   state                    in                       out
 *   ann [00, 10) n=2         ann [08, 18) n=1         +I ann [00, 18) n=3
 *   ann [40, 50) n=1                                  -D ann [00, 10) n=2
 * }}}
 *
 *   - in: a buffer of each function per partition and time of a row, sorted by session
 *   - out: per partition, the new sessions with kind `+I`, then the replaced sessions with `-D`, each with its
 *     buffers
 *   - state: the buffers of each session: `partition, session -> buffers`
 *   - law: functions evaluated over the buffers of `out` give the inserted and removed sessions
 *
 * Spark's own iterator merges sessions and buffers. A partition's rows of the batch, and the overlapping
 * sessions, are held in memory.
 *
 * @param calls
 *   the functions, merging buffers
 * @param buffers
 *   the columns of the buffers
 * @param emitsClosed
 *   whether a session is emitted once, after the watermark has passed its end
 */
case class ChangelogSessionExec(
    partition: Seq[Attribute],
    sessionColumn: Attribute,
    calls: Seq[AggregateExpression],
    buffers: Seq[Attribute],
    override val dropsLate: Boolean,
    override val emitsClosed: Boolean,
    outputKind: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    child: SparkPlan)
    extends SessionStateWriter {

  private val columns = partition :+ sessionColumn
  private val layout = ReplayLayout(partition, columns, Nil)

  override def shortName: String = "changelogSession"

  override def simpleString(maxFields: Int): String =
    s"$nodeName(partition=${truncatedString(partition, "[", ", ", "]", maxFields)}, " +
      s"session=$sessionColumn)"

  override def output: Seq[Attribute] = (partition :+ outputKind :+ sessionColumn) ++ buffers

  override def producedAttributes: AttributeSet = AttributeSet(outputKind +: buffers)

  override def outputOrdering: Seq[SortOrder] =
    if (emitsClosed) Nil
    else (partition :+ outputKind :+ sessionColumn).map(SortOrder(_, Ascending))

  override def placedBy: Seq[Attribute] = partition

  override def requiredChildOrdering: Seq[Seq[SortOrder]] =
    Seq(columns.map(SortOrder(_, Ascending)))

  override def timedColumns: Seq[Attribute] = Seq(sessionColumn)

  override def stateKeySchema: StructType = layout.keySchema

  override def stateValueSchema: StructType = StateColumns(
    if (buffers.isEmpty) Seq("nothing" -> IntegerType)
    else calls.flatMap(AggregateLayout.bufferColumns))

  override def keyEncoder: KeyStateEncoderSpec =
    PrefixKeyScanStateEncoderSpec(stateKeySchema, layout.numPrefixColumns)

  override protected def entryTimes: Option[EntryTimes] = timesOfKey(layout.key)

  override protected def processPartition(
      store: StateStore,
      rows: Iterator[InternalRow]): Iterator[InternalRow] = {
    val sessions = new SessionState(
      layout.key,
      layout.numPrefixColumns,
      sessionColumn,
      store,
      isVisible = _ => true)
    val changes = new SessionChanges(store, sessions)
    lazy val ended = removeEnded(store, sessions).flatMap { entry =>
      longMetric("numRemovedStateRows") += 1
      if (emitsClosed) Some(changes.closed(entry)) else None
    }
    if (emitsClosed) changes.merged(rows) ++ ended
    else {
      CompletionIterator[InternalRow, Iterator[InternalRow]](
        changes.merged(rows),
        ended.foreach(_ => ()))
    }
  }

  /** A session before the batch, and the row that represents the session in the merge. */
  private final class Stored(val entry: SessionState.Entry, val row: UnsafeRow) {

    /** Whether the session has the same bounds after the batch, but different buffers. */
    var isRewritten: Boolean = false
  }

  private final class SessionChanges(store: StateStore, sessions: SessionState) {
    private val input = columns ++ buffers
    private val keyOf = UnsafeProjection.create(layout.keyOfRow, input)
    private val valueOf = UnsafeProjection
      .create(if (buffers.isEmpty) Seq(Literal(0)) else buffers, input)
    private val rowOf = UnsafeProjection.create(input, layout.key ++ buffers)
    private val outputOf = UnsafeProjection.create(
      (partition :+ Literal(RowKind.Insert) :+ sessionColumn) ++ buffers,
      input)
    private val sessionOf = UnsafeProjection.create(Seq(sessionColumn), input)
    private val joined = new JoinedRow
    private val isLate = lateSessions(sessions)
    private val metrics = changeMetrics

    // for each partition being merged, the sessions that overlap with its rows
    private val reached = new ArrayDeque[Seq[Stored]]

    def merged(rows: Iterator[InternalRow]): Iterator[InternalRow] = {
      val all = GroupedIterator(rows, partition, child.output).flatMap { case (_, added) =>
        withReached(added)
      }
      val merged = if (all.hasNext) merge(all) else Iterator.empty
      GroupedIterator(merged, partition, input).flatMap { case (_, now) =>
        replace(reached.removeFirst(), now)
      }
    }

    /** Returns the rows of a partition that are not late, and the overlapping sessions, in order. */
    private def withReached(added: Iterator[InternalRow]): Iterator[UnsafeRow] = {
      val rows = added.map(_.asInstanceOf[UnsafeRow]).filterNot(row => isLate(keyOf(row)))
      val inTime = rows.map(_.copy()).toArray
      if (inTime.isEmpty) Iterator.empty
      else {
        val stored = sessions
          .reachedBy(keyOf(inTime.head), inTime.map(beginOf).min, inTime.map(endOf).max)
          .map(entry => new Stored(entry, rowOf(joined(entry.key, entry.value)).copy()))
        reached.addLast(stored.toSeq)
        (inTime ++ stored.map(_.row)).sortBy(beginOf).iterator
      }
    }

    private def beginOf(row: UnsafeRow): Long = sessionOf(row).getStruct(0, 2).getLong(0)

    private def endOf(row: UnsafeRow): Long = sessionOf(row).getStruct(0, 2).getLong(1)

    private def merge(rows: Iterator[InternalRow]): Iterator[InternalRow] =
      SparkAggregates.mergeSessions(
        TaskContext.getPartitionId(),
        columns,
        sessionColumn,
        input,
        rows,
        calls,
        longMetric("numMergedSessions"))

    /** Writes the new sessions of a partition and returns the changes. */
    private def replace(before: Seq[Stored], now: Iterator[InternalRow]): Iterator[UnsafeRow] = {
      val gone = new LinkedHashMap[UnsafeRow, Stored]
      before.foreach(stored => gone.put(stored.entry.key, stored))
      val come = now
        .map(_.asInstanceOf[UnsafeRow])
        .flatMap { session =>
          val stored = gone.get(keyOf(session))
          if (stored != null && stored.entry.value == valueOf(session)) {
            gone.remove(stored.entry.key)
            None
          } else {
            if (stored != null) stored.isRewritten = true
            Some(session.copy())
          }
        }
        .toArray
      gone.forEach { (key, stored) =>
        if (!stored.isRewritten) {
          store.remove(key)
          metrics.removed += 1
        }
      }
      come.foreach { session =>
        store.put(keyOf(session), valueOf(session))
        metrics.updated += 1
      }
      if (emitsClosed) Iterator.empty
      else {
        come.iterator.map(emit(_, RowKind.Insert)) ++
          before.iterator
            .filter(stored => gone.containsKey(stored.entry.key))
            .map(stored => emit(stored.row, RowKind.Delete))
      }
    }

    /** Returns a closed session, to emit once. */
    def closed(entry: SessionState.Entry): UnsafeRow =
      emit(rowOf(joined(entry.key, entry.value)), RowKind.Insert)

    private def emit(session: UnsafeRow, kind: Byte): UnsafeRow = {
      val row = outputOf(session)
      row.setByte(partition.size, kind)
      metrics.emit(kind)
      row
    }
  }

  override protected def counters: Seq[(String, String)] =
    super.counters :+
      "numMergedSessions" -> "number of sessions read"

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogSessionExec =
    copy(child = newChild)
}

/**
 * Plans an aggregate by session over insert-only input, from Spark's plan of the aggregate over replayed rows.
 * The state holds buffers of sessions instead of rows.
 *
 * {{{
 *   SortAggregate (final)  [who, kind, session]        SortAggregate (final)  [who, kind, session]
 *   +- MergingSessions                            =>   +- ChangelogSession  [who] [session]
 *      +- HashAggregate (partial)                         +- HashAggregate (partial)  [who, session]
 *         +- Replay                                          +- rows
 *            +- rows
 * }}}
 */
private[execution] object PlanChangelogSession {

  /**
   * Returns the stateful operator of the plan.
   *
   * @param aggregate
   *   the aggregate over `replay`
   * @param merging
   *   the merge of sessions in Spark's plan
   * @param plan
   *   plans the nodes below
   */
  def apply(
      aggregate: Aggregate,
      replay: ChangelogReplay,
      merging: MergedSessions,
      state: StatefulOperatorStateInfo,
      plan: LogicalPlan => SparkPlan): ChangelogSessionExec = {
    val columns = merging.grouping
    val session = merging.session
    val partition =
      columns.filterNot(c => c.exprId == session.exprId || c.exprId == replay.outputKind.exprId)
    val buffers =
      merging.functions.flatMap(_.aggregateFunction.inputAggBufferAttributes)
    ChangelogSessionExec(
      partition,
      session,
      merging.functions,
      buffers,
      replay.dropsLate,
      replay.emitsClosed,
      replay.outputKind,
      Some(AssignStateInfo.placed(state, partition)),
      SparkAggregates
        .over(merging.input, plan(rowsBelow(aggregate.child, replay)), replay.outputKind))
  }

  /** Returns the aggregate's input without the replay. */
  private def rowsBelow(plan: LogicalPlan, replay: ChangelogReplay): LogicalPlan = plan match {
    case `replay` => replay.child
    case sort: Sort => rowsBelow(sort.child, replay)
    case other =>
      val rows = rowsBelow(other.children.head, replay)
      other match {
        case Project(list, _) =>
          Project(list.filterNot(_.exprId == replay.outputKind.exprId), rows)
        case _ => other.withNewChildren(Seq(rows))
      }
  }
}
