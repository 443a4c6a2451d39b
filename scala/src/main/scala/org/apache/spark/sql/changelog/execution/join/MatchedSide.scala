// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.plans._

/**
 * One side as the processor sees it: its rows, and what comes out of a row by itself.
 *
 * @param besideMatched
 *   what stands beside a row that has matches; null if it doesn't come out
 * @param besideUnmatched
 *   what stands beside a row that has no match; null if it doesn't come out
 */
private[join] final class MatchedSide(
    val isLeft: Boolean,
    val state: JoinSideState,
    val layout: JoinSideLayout,
    besideMatched: InternalRow,
    val besideUnmatched: InternalRow) {

  /** Whether a row can come out by itself. */
  val isPreserved: Boolean = besideMatched != null || besideUnmatched != null

  /** Without a condition, how many rows each row matched before the batch. */
  var matchesBefore: Long = 0

  /** Without a condition, how many rows each row matches after the batch. */
  var matchesAfter: Long = 0

  /** How many rows do not change; -1 if they have not been counted. */
  var numUnchanged: Long = -1

  /** What stands beside a row with so many copies and matches; null if it doesn't come out. */
  def beside(copies: Long, matches: Long): InternalRow =
    if (copies == 0) null else if (matches > 0) besideMatched else besideUnmatched

  def hasChanges: Boolean = state.changes.nonEmpty

  /** Lets every row match all rows of the other side, counted as far as it matters. */
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

  /** Lets every row match as many rows as the other side has. */
  def matchTotal(other: JoinSideState): Unit = matchEach(other.totalBefore, other.totalAfter)

  private def matchEach(before: Long, after: Long): Unit = {
    matchesBefore = before
    matchesAfter = after
    state.changes.foreach { change =>
      change.matchesBefore = before
      change.matchesAfter = after
    }
  }

  /** Starts to count the matches of what changes. */
  def forgetMatches(): Unit = state.changes.foreach { change =>
    change.matchesBefore = 0
    change.matchesAfter = 0
  }

  /** Starts with the matches that are kept with what changes. */
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

  /** What stands beside a left row that has matches. */
  def besideMatched(joinType: JoinType): InternalRow = joinType match {
    case LeftSemi => InternalRow.empty
    case _: ExistenceJoin => InternalRow(true)
    case _ => null
  }

  /** What stands beside a left row that has no match. */
  def besideLeft(joinType: JoinType, numRightColumns: Int): InternalRow = joinType match {
    case LeftOuter | LeftSingle | FullOuter => new GenericInternalRow(numRightColumns)
    case LeftAnti => InternalRow.empty
    case _: ExistenceJoin => InternalRow(false)
    case _ => null
  }

  /** What stands beside a right row that has no match. */
  def besideRight(joinType: JoinType, numLeftColumns: Int): InternalRow = joinType match {
    case RightOuter | FullOuter => new GenericInternalRow(numLeftColumns)
    case _ => null
  }
}
