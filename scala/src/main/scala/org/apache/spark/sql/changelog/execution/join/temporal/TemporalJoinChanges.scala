// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.LeftOuter
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.execution.streaming.state.{StateStore, UnsafeRowPair}
import org.apache.spark.sql.execution.{CoGroupedIterator, GroupedIterator}

import org.apache.spark.sql.changelog.execution.join.{JoinOutput, KeyedChanges}
import org.apache.spark.sql.changelog.execution.{
  ChangeMetrics, DistinctRows, UnmatchedRetractions
}
import org.apache.spark.sql.changelog.plans.{ChangelogJoin, TemporalMatching}

/**
 * Emits the changes of each join key in a batch. Then emits rows that the watermark has made final, unless they
 * were emitted before, and removes them from the state.
 *
 * @param inputs
 *   the columns of both sides' changes
 * @param rows
 *   both sides' changes, each sorted by join key and time
 * @param ages
 *   for each side, whether unchanged state expires by a TTL
 * @param certain
 *   the watermark, in ms, up to which everything is final after this batch
 * @param due
 *   the entries with newly final rows; evaluated after the batch's changes
 */
private[temporal] final class TemporalJoinChanges(
    layout: TemporalJoinLayout,
    matching: TemporalMatching,
    inputs: Seq[Seq[Attribute]],
    rows: Seq[Iterator[InternalRow]],
    store: StateStore,
    ages: Seq[Boolean],
    metrics: ChangeMetrics,
    certain: Option[Long],
    due: => Iterator[UnsafeRowPair],
    unmatched: UnmatchedRetractions)
    extends KeyedChanges(layout.left.columns.size + layout.right.columns.size, metrics) {
  private val columns =
    ChangelogJoin.output(matching.joinType, layout.left.columns, layout.right.columns)
  private val leftOrder = layout.left.comparator()
  private val rightOrder = layout.right.comparator()
  private val left = orderedRows(layout.left)
  private val right = orderedRows(layout.right)
  private val leftChanges = new OrderedChanges(layout.left, inputs(0), leftOrder)
  private val rightChanges = new OrderedChanges(layout.right, inputs(1), rightOrder)
  private val versions = new KeyVersions(right, rightOrder, matching.allowsEqual, unmatched)
  override protected val buffer: JoinOutput =
    new JoinOutput(columns, pairBy = None, sendsUpdateBefore = true, deletes = true)
  private val processor = new ChangelogTemporalJoinProcessor(
    left,
    leftOrder,
    versions,
    matching.condition.map(Predicate.create(_, layout.left.columns ++ layout.right.columns)),
    if (matching.joinType == LeftOuter) new GenericInternalRow(layout.right.columns.size)
    else null,
    !matching.appends,
    buffer,
    unmatched)
  private val groups = new CoGroupedIterator(
    GroupedIterator(rows(0), layout.left.key, inputs(0)),
    GroupedIterator(rows(1), layout.right.key, inputs(1)),
    KeyedChanges.commonKey(layout.left.key))
  private val nullMatchesNothing =
    matching.matchesNull.indices.filterNot(matching.matchesNull).toArray

  private lazy val certainTime = DateTimeUtils.millisToMicros(certain.get)

  // the keys that may have newly final rows, after the batch's changes
  private lazy val certainKeys: Iterator[UnsafeRow] =
    keysOf(due).iterator

  private var isProcessing = false
  private var isForgetting = false

  private def orderedRows(side: TemporalSideLayout): OrderedRows[TemporalSideLayout] =
    new OrderedRows(layout, side, store, rewritesDirectory = ages(side.number), metrics)

  override protected def step(): Boolean = {
    val isAtWork = isProcessing || isForgetting
    if (isProcessing) isProcessing = processor.step()
    else if (isForgetting) isForgetting = forgetRun()
    isAtWork
  }

  override protected def nextKey(): Boolean = {
    val hasChanges = groups.hasNext
    if (hasChanges) nextChangedKey() else if (certainKeys.hasNext) nextCertainKey()
    hasChanges || isForgetting
  }

  private def nextChangedKey(): Unit = {
    val (key, leftRows, rightRows) = groups.next()
    leftChanges.begin(leftRows)
    rightChanges.begin(rightRows)
    if (nullMatchesNothing.exists(key.isNullAt(_))) {
      while (leftChanges.first != null) {
        processor.emitUnmatched(leftChanges.first.row, leftChanges.first.count)
        leftChanges.removeFirst()
      }
    } else {
      val joinKey = key.copy().asInstanceOf[UnsafeRow]
      versions.load(joinKey, rightChanges)
      processor.begin(joinKey, leftChanges)
      isProcessing = true
    }
  }

  private def keysOf(due: Iterator[UnsafeRowPair]): Iterable[UnsafeRow] = {
    val joinKey =
      UnsafeProjection.create(layout.joinKey.map(part => part.copy(ordinal = part.ordinal + 1)))
    DistinctRows(due.map(entry => joinKey(entry.key)))
  }

  private def nextCertainKey(): Unit = {
    val key = certainKeys.next()
    versions.view(key)
    left.load(key)
    isForgetting = true
  }

  /** Removes final left rows of a run. Returns false when the join key is done. */
  private def forgetRun(): Boolean = {
    val timeOrdinal = layout.left.timeOrdinal
    val run = if (left.numRuns > 0) left.read(0) else SortedRun.empty
    val numCertain = run.rows.takeWhile(_.getLong(timeOrdinal) <= certainTime).length
    if (matching.appends) {
      (0 until numCertain).foreach { index =>
        processor.emitFinal(run.rows(index), run.counts(index))
      }
    }
    val isAll = left.numRuns > 0 && numCertain == run.size
    if (isAll) left.remove(0)
    else {
      if (numCertain > 0) {
        val rewrite = left.rewrite(0)
        (numCertain until run.size).foreach { index =>
          rewrite.add(run.rows(index), run.counts(index))
        }
        rewrite.finish()
      }
      left.save()
      versions.forgetBefore(certainTime)
    }
    isAll
  }
}
