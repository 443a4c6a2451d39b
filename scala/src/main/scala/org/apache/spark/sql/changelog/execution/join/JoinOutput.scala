// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import java.util.Arrays

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._

import org.apache.spark.sql.changelog.plans.JoinResult
import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/**
 * Buffers the rows emitted by a step of a join.
 *
 * A retracted row is held until the next row. With an equal key both become an update, and equal rows cancel
 * out.
 *
 * @param columns
 *   the emitted columns, left then right
 * @param pairBy
 *   the key by which an old and a new row become an update; empty without such a key
 * @param sendsUpdateBefore
 *   whether updates have a before image
 * @param deletes
 *   whether a retraction without a replacement is a delete, or half an update
 */
private[join] final class JoinOutput(
    columns: Seq[Attribute],
    pairBy: Option[Seq[Attribute]],
    sendsUpdateBefore: Boolean,
    deletes: Boolean) {

  private val steps = new Steps
  private val joined = new JoinedRow
  private val kindOrdinal = columns.size
  private val rowOf =
    UnsafeProjection.create(columns :+ Literal(RowKind.Insert), columns)
  private val keyOfGone = pairBy.map(UnsafeProjection.create(_, columns)).orNull
  private val keyOfCome = pairBy.map(UnsafeProjection.create(_, columns)).orNull
  private val deleteKind = if (deletes) RowKind.Delete else RowKind.UpdateBefore
  private val insertKind = if (sendsUpdateBefore) RowKind.Insert else RowKind.UpdateAfter

  private var held: UnsafeRow = _
  private var second: UnsafeRow = _

  /** Emits a changed number of copies of a pair, or of a padding row. */
  def recount(left: InternalRow, right: InternalRow, before: Long, after: Long): Unit =
    if (before > after) emit(left, right, RowKind.Delete, before - after)
    else if (after > before) emit(left, right, RowKind.Insert, after - before)

  /** Emits the replacement of a row by another, with the number of copies of each. */
  def replace(
      leftBefore: InternalRow,
      rightBefore: InternalRow,
      before: Long,
      leftAfter: InternalRow,
      rightAfter: InternalRow,
      after: Long): Unit = {
    var pairs = math.min(before, after)
    if (before > pairs) emit(leftBefore, rightBefore, RowKind.Delete, before - pairs)
    if (after > pairs) emit(leftAfter, rightAfter, RowKind.Insert, after - pairs)
    while (pairs > 0) {
      emit(leftBefore, rightBefore, RowKind.Delete, 1)
      emit(leftAfter, rightAfter, RowKind.Insert, 1)
      pairs -= 1
    }
  }

  /** Emits a row with its input row kind. */
  def pass(left: InternalRow, right: InternalRow, kind: Byte): Unit =
    if (RowKind.retracts(kind)) emit(left, right, RowKind.Delete, 1)
    else emit(left, right, if (kind == RowKind.UpdateAfter) insertKind else kind, 1)

  private def emit(left: InternalRow, right: InternalRow, kind: Byte, copies: Long): Unit =
    steps.add(left, right, kind, copies)

  /** Returns the next row to emit, valid until the next call; null after the last row. */
  def poll(): UnsafeRow = {
    var row = second
    second = null
    while (row == null && !steps.isEmpty) row = take(nextRow())
    row
  }

  /** Returns the held retraction, or null, when no row can follow to pair with. */
  def pollHeld(): UnsafeRow = {
    val row = held
    held = null
    row
  }

  private def nextRow(): UnsafeRow = {
    val row = rowOf(joined(steps.left, steps.right))
    row.setByte(kindOrdinal, steps.kind)
    steps.removeOne()
    row
  }

  private def take(row: UnsafeRow): UnsafeRow =
    if (RowKind.retracts(row.getByte(kindOrdinal))) {
      val before = held
      held = row.copy()
      held.setByte(kindOrdinal, deleteKind)
      before
    } else if (held == null) row
    else meet(row)

  /** Combines the held retraction with the next row. */
  private def meet(row: UnsafeRow): UnsafeRow = {
    val gone = pollHeld()
    val kind = row.getByte(kindOrdinal)
    gone.setByte(kindOrdinal, kind)
    if (gone == row) null
    else if (keyOfGone != null && keyOfGone(gone) == keyOfCome(row)) {
      row.setByte(kindOrdinal, RowKind.UpdateAfter)
      if (sendsUpdateBefore) {
        gone.setByte(kindOrdinal, RowKind.UpdateBefore)
        second = row
        gone
      } else row
    } else {
      gone.setByte(kindOrdinal, deleteKind)
      second = row
      gone
    }
  }
}

private[join] object JoinOutput {

  /** Returns the output of a join for rows with `columns`. */
  def apply(columns: Seq[Attribute], result: JoinResult): JoinOutput = new JoinOutput(
    columns,
    result.pairBy,
    result.updateKind != UpdateKind.OnlyUpdateAfter,
    result.deletes)
}

/** A queue of rows to emit, with a number of copies each, without an object per row. */
private final class Steps {
  private var lefts = new Array[InternalRow](16)
  private var rights = new Array[InternalRow](16)
  private var kinds = new Array[Byte](16)
  private var copies = new Array[Long](16)
  private var first = 0
  private var end = 0

  def isEmpty: Boolean = first == end

  def add(left: InternalRow, right: InternalRow, kind: Byte, count: Long): Unit = {
    if (end == lefts.length) {
      lefts = Arrays.copyOf(lefts, 2 * end)
      rights = Arrays.copyOf(rights, 2 * end)
      kinds = Arrays.copyOf(kinds, 2 * end)
      copies = Arrays.copyOf(copies, 2 * end)
    }
    lefts(end) = left
    rights(end) = right
    kinds(end) = kind
    copies(end) = count
    end += 1
  }

  /** The left row of the first element. */
  def left: InternalRow = lefts(first)

  def right: InternalRow = rights(first)

  def kind: Byte = kinds(first)

  /** Removes a copy of the first element. */
  def removeOne(): Unit = {
    copies(first) -= 1
    if (copies(first) == 0) {
      lefts(first) = null
      rights(first) = null
      first += 1
      // each step's rows are polled before the next step adds rows
      if (isEmpty) {
        first = 0
        end = 0
      }
    }
  }
}

/**
 * One side of the join: its rows, and the columns that pad a row emitted without a pair.
 *
 * @param paddingIfMatched
 *   the other side's columns for a row that has matches; null if such a row is not emitted alone
 * @param paddingIfUnmatched
 *   the other side's columns for a row that has no match; null if such a row is not emitted
 */
private[join] final class MatchedSide(
    val isLeft: Boolean,
    val state: JoinSideState,
    val layout: JoinSideLayout,
    paddingIfMatched: InternalRow,
    val paddingIfUnmatched: InternalRow) {

  /** Whether a row can be emitted without a pair. */
  val isPreserved: Boolean = paddingIfMatched != null || paddingIfUnmatched != null

  /** Without a join condition, the number of matches of each row before the batch. */
  var matchesBefore: Long = 0

  /** Without a join condition, the number of matches of each row after the batch. */
  var matchesAfter: Long = 0

  /** The number of unchanged rows; -1 if not counted. */
  var numUnchanged: Long = -1

  /** Returns the other side's columns for a row emitted without a pair; null if the row is not emitted. */
  def padding(copies: Long, matches: Long): InternalRow =
    if (copies == 0) null else if (matches > 0) paddingIfMatched else paddingIfUnmatched

  def hasChanges: Boolean = state.changes.nonEmpty

  /** Sets the matches of each row to the number of the other side's rows, counted up to `enough`. */
  def matchAll(other: MatchedSide, enough: Long): Unit = {
    var before, after = 0L
    other.state.changes.foreach { change =>
      before += change.copiesBefore
      after += change.copiesAfter
    }
    val same =
      if (other.numUnchanged >= 0) other.numUnchanged
      else if (before >= enough && after >= enough) 0L
      else other.countUnchanged(enough)
    matchEach(before + same, after + same)
  }

  /** Sets the matches of each row to the other side's stored number of rows. */
  def matchTotal(other: JoinSideState): Unit = matchEach(other.totalBefore, other.totalAfter)

  private def matchEach(before: Long, after: Long): Unit = {
    matchesBefore = before
    matchesAfter = after
    state.changes.foreach { change =>
      change.matchesBefore = before
      change.matchesAfter = after
    }
  }

  /** Resets the matches of changed rows, to count them. */
  def forgetMatches(): Unit = state.changes.foreach { change =>
    change.matchesBefore = 0
    change.matchesAfter = 0
  }

  /** Sets the matches of changed rows to the numbers in the state. */
  def keepMatches(): Unit =
    state.changes.foreach(change => change.matchesAfter = change.matchesBefore)

  private def countUnchanged(enough: Long): Long = {
    val rows = state.unchanged()
    try {
      var count = 0L
      while (count < enough && rows.next()) count += rows.copies
      count
    } finally rows.close()
  }
}

private[join] object MatchedSide {

  /** Returns the right columns of a left row with matches; null if the row is not emitted without a pair. */
  def paddingIfMatched(joinType: JoinType): InternalRow = joinType match {
    case LeftSemi => InternalRow.empty
    case _: ExistenceJoin => InternalRow(true)
    case _ => null
  }

  /** Returns the right columns of a left row without a match; null if the row is not emitted. */
  def leftPadding(joinType: JoinType, numRightColumns: Int): InternalRow = joinType match {
    case LeftOuter | LeftSingle | FullOuter => new GenericInternalRow(numRightColumns)
    case LeftAnti => InternalRow.empty
    case _: ExistenceJoin => InternalRow(false)
    case _ => null
  }

  /** Returns the left columns of a right row without a match; null if the row is not emitted. */
  def rightPadding(joinType: JoinType, numLeftColumns: Int): InternalRow = joinType match {
    case RightOuter | FullOuter => new GenericInternalRow(numLeftColumns)
    case _ => null
  }
}
