// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, JoinedRow, UnsafeRow}
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.metric.SQLMetric

import org.apache.spark.sql.changelog.plans.SideForm

/**
 * Joins the changes of each join key.
 *
 * Call for each join key: [[begin]], then [[step]] until it returns false. Each step adds rows to `output`, to
 * be emitted before the next step.
 *
 * {{{
 *   1  stored right rows    x  changes of the left     only if the left side changed
 *   2  changes of the left  x  changes of the right
 *   3  stored left rows     x  changes of the right    only if the right side changed
 *   4  changed right rows without a match              if the right side is preserved
 *   5  state is written
 * }}}
 *
 * Each pair of rows with a change is visited once, with its old and its new form. The join thus emits nothing
 * that the same batch retracts. The number of matches before and after decides whether a row is emitted without
 * a pair. Without a join condition, this is the number of rows of the other side. With a condition, a changed
 * row counts its matches, because it visits every row of the other side anyway. For an unchanged row the state
 * holds the number.
 */
private[join] final class ChangelogJoinProcessor(
    left: MatchedSide,
    right: MatchedSide,
    emitsPairs: Boolean,
    isSingle: Boolean,
    condition: Option[BasePredicate],
    output: JoinOutput,
    numMatches: SQLMetric,
    numPaddingsRetracted: SQLMetric) {
  private val predicate = condition.orNull
  private val joined = new JoinedRow
  private val rightIsTotal = right.layout.form == SideForm.KeyCount
  // whether only the number of right rows decides the result
  private val isByNumber = !emitsPairs && predicate == null

  private var matched = 0L
  private var phase = 0
  private var index = 0
  private var stored: StoredRows = _
  private var countsLeftMatches = false
  private var keptBefore = new Array[Boolean](16)
  private var keptAfter = new Array[Boolean](16)

  /** Starts a join key. Both sides have all changes of this part. */
  def begin(): Unit = {
    left.state.load()
    right.state.load()
    index = 0
    countsLeftMatches = !rightIsTotal && (emitsPairs || !left.layout.tracksMatches ||
      left.state.changes.exists(change => change.after != null && !change.isSameRow))
    if (left.hasChanges && countsLeftMatches) left.forgetMatches()
    right.forgetMatches()
    val rightChanges =
      if (rightIsTotal) right.state.totalBefore != right.state.totalAfter else right.hasChanges
    if (!left.hasChanges && !rightChanges) phase = 5
    else {
      if (predicate == null && right.isPreserved) right.matchAll(left, enough = 1)
      if (left.hasChanges && countsLeftMatches) {
        phase = 1
        stored = right.state.unchanged()
        right.numUnchanged = 0
      } else {
        right.numUnchanged = -1
        startChanges()
      }
    }
  }

  /** Does the next part of the work. Returns false when the join key is done. */
  def step(): Boolean = {
    phase match {
      case 1 =>
        if (stored.next()) {
          right.numUnchanged += stored.copies
          joinStored(right, left)
        } else {
          stored.close()
          startChanges()
        }
      case 2 =>
        if (index < left.state.changes.size) {
          meetChanges(left.state.changes(index))
          index += 1
        } else startStoredLeft()
      case 3 =>
        if (stored.next()) joinStored(left, right)
        else {
          stored.close()
          index = 0
          phase = if (right.isPreserved) 4 else 5
        }
      case 4 =>
        if (index < right.state.changes.size) {
          emitAlone(right, right.state.changes(index))
          index += 1
        } else phase = 5
      case 5 =>
        left.state.save()
        right.state.save()
        numMatches += matched
        matched = 0
        phase = 6
      case _ =>
    }
    phase < 6
  }

  private def startChanges(): Unit = {
    phase = 2
    if (rightIsTotal) left.matchTotal(right.state)
    else if (predicate == null && left.isPreserved) {
      left.matchAll(right, enough = if (isSingle) 2 else 1)
    } else if (!countsLeftMatches) left.keepMatches()
  }

  private def startStoredLeft(): Unit = {
    val paddingChanges = (left.matchesBefore > 0) != (left.matchesAfter > 0)
    if (if (isByNumber) paddingChanges else right.hasChanges) {
      phase = 3
      stored = left.state.unchanged()
    } else phase = 5
  }

  /** Joins a stored row with the changes of the other side. */
  private def joinStored(own: MatchedSide, other: MatchedSide): Unit = {
    val row = stored.row
    val copies = stored.copies
    val changes = other.state.changes
    var before, after = 0L
    if (predicate == null) {
      before = own.matchesBefore
      after = own.matchesAfter
    } else {
      if (keptBefore.length < changes.size) {
        keptBefore = new Array[Boolean](2 * changes.size)
        keptAfter = new Array[Boolean](2 * changes.size)
      }
      var gone, come = 0L
      var at = 0
      while (at < changes.size) {
        val change = changes(at)
        keptBefore(at) = matches(own.isLeft, row, change.before)
        keptAfter(at) =
          if (change.isSameRow) keptBefore(at) else matches(own.isLeft, row, change.after)
        if (keptBefore(at)) {
          gone += change.copiesBefore
          if (countsMatchesOf(other)) change.matchesBefore += copies
        }
        if (keptAfter(at)) {
          come += change.copiesAfter
          if (countsMatchesOf(other)) change.matchesAfter += copies
        }
        at += 1
      }
      before = if (own.layout.tracksMatches) stored.matches else gone
      after = before - gone + come
    }
    if (own.isLeft) checkSingle(copies, after)

    val paddingBefore = own.padding(copies, before)
    val paddingAfter = own.padding(copies, after)
    if (paddingBefore != null)
      emitAlone(own, row, copies, paddingBefore, row, copies, paddingAfter)
    if (emitsPairs) {
      var at = 0
      while (at < changes.size) {
        val change = changes(at)
        val copiesBefore = if (predicate == null || keptBefore(at)) change.copiesBefore else 0
        val copiesAfter = if (predicate == null || keptAfter(at)) change.copiesAfter else 0
        if (copiesAfter > 0) matched += 1
        emit(
          own.isLeft,
          row,
          change.before,
          copies * copiesBefore,
          row,
          change.after,
          copies * copiesAfter)
        at += 1
      }
    }
    if (paddingBefore == null && paddingAfter != null) {
      emitAlone(own, row, copies, null, row, copies, paddingAfter)
    }
    if (own.layout.tracksMatches && before != after) stored.saveMatches(after)
  }

  /** Joins a changed left row with the changes of the right side, and emits its padding row. */
  private def meetChanges(own: RowChange): Unit = {
    if (!isByNumber) {
      var at = 0
      while (at < right.state.changes.size) {
        meetChanges(own, right.state.changes(at))
        at += 1
      }
    }
    checkSingle(own.copiesAfter, own.matchesAfter)
    emitAlone(left, own)
  }

  private def meetChanges(own: RowChange, other: RowChange): Unit = {
    val keptBefore = own.before != null && matches(true, own.before, other.before)
    val keptAfter =
      if (own.isSameRow && other.isSameRow) keptBefore
      else own.after != null && matches(true, own.after, other.after)
    if (predicate != null) {
      val gone = if (keptBefore) other.copiesBefore else 0
      val come = if (keptAfter) other.copiesAfter else 0
      if (countsLeftMatches) {
        own.matchesBefore += gone
        own.matchesAfter += come
      } else own.matchesAfter += come - gone
      if (keptBefore) other.matchesBefore += own.copiesBefore
      if (keptAfter) other.matchesAfter += own.copiesAfter
    }
    if (emitsPairs) {
      if (keptAfter) matched += 1
      emit(
        isLeft = true,
        own.before,
        other.before,
        if (keptBefore) own.copiesBefore * other.copiesBefore else 0,
        own.after,
        other.after,
        if (keptAfter) own.copiesAfter * other.copiesAfter else 0)
    }
  }

  /** Returns whether a side's changes count their matches, and do not read the count from the state. */
  private def countsMatchesOf(part: MatchedSide): Boolean = !part.isLeft || countsLeftMatches

  private def matches(isLeft: Boolean, own: UnsafeRow, other: UnsafeRow): Boolean =
    other != null && (predicate == null ||
      predicate.eval(if (isLeft) joined(own, other) else joined(other, own)))

  private def checkSingle(copies: Long, matches: Long): Unit =
    if (isSingle && copies > 0 && matches > 1) {
      throw QueryExecutionErrors.scalarSubqueryReturnsMultipleRows()
    }

  private def emitAlone(part: MatchedSide, change: RowChange): Unit = emitAlone(
    part,
    change.before,
    change.copiesBefore,
    part.padding(change.copiesBefore, change.matchesBefore),
    change.after,
    change.copiesAfter,
    part.padding(change.copiesAfter, change.matchesAfter))

  private def emitAlone(
      part: MatchedSide,
      before: UnsafeRow,
      copiesBefore: Long,
      paddingBefore: InternalRow,
      after: UnsafeRow,
      copiesAfter: Long,
      paddingAfter: InternalRow): Unit = {
    if (emitsPairs && paddingBefore != null && paddingAfter == null) {
      numPaddingsRetracted += copiesBefore
    }
    emit(
      part.isLeft,
      before,
      paddingBefore,
      if (paddingBefore == null) 0 else copiesBefore,
      after,
      paddingAfter,
      if (paddingAfter == null) 0 else copiesAfter)
  }

  /** Emits the replacement of a result row by another, with the number of copies of each. */
  private def emit(
      isLeft: Boolean,
      ownBefore: InternalRow,
      otherBefore: InternalRow,
      before: Long,
      ownAfter: InternalRow,
      otherAfter: InternalRow,
      after: Long): Unit =
    if (before > 0 || after > 0) {
      val isSame =
        before > 0 && after > 0 && (ownBefore eq ownAfter) && (otherBefore eq otherAfter)
      if (isLeft) {
        if (isSame) output.recount(ownAfter, otherAfter, before, after)
        else output.replace(ownBefore, otherBefore, before, ownAfter, otherAfter, after)
      } else {
        if (isSame) output.recount(otherAfter, ownAfter, before, after)
        else output.replace(otherBefore, ownBefore, before, otherAfter, ownAfter, after)
      }
    }
}
