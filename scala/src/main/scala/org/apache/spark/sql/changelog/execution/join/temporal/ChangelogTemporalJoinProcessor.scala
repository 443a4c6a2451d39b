// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import java.util.Comparator

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, JoinedRow, UnsafeRow}

import org.apache.spark.sql.changelog.execution.join.JoinOutput
import org.apache.spark.sql.changelog.execution.{SignedRow, UnmatchedRetractions}

/**
 * Joins the left rows of each join key with their versions.
 *
 * Call for each join key: [[begin]], then [[step]] until it returns false. Each step adds rows to `output`, to
 * be emitted before the next step. The processor reads left rows and their changes in order of time. Runs
 * without changed rows or changed versions are skipped.
 *
 * @param paddingIfUnmatched
 *   the right columns of a left row without a version; null if such a row is not emitted
 * @param emits
 *   whether rows are emitted on arrival, not when they are final
 */
private[temporal] final class ChangelogTemporalJoinProcessor(
    rows: OrderedRows[TemporalSideLayout],
    order: Comparator[UnsafeRow],
    versions: KeyVersions,
    condition: Option[BasePredicate],
    paddingIfUnmatched: InternalRow,
    emits: Boolean,
    output: JoinOutput,
    unmatched: UnmatchedRetractions) {
  private val predicate = condition.orNull
  private val joined = new JoinedRow
  private val side = rows.side

  private var changes: OrderedChanges = _
  private var run = 0
  private var stored: SortedRun = _
  private var at = 0
  // the first row of the next run
  private var until: UnsafeRow = _
  private var rewrite: OrderedRows[TemporalSideLayout]#Rewrite = _

  /** Starts a join key with all changes of left rows. `versions` already has the changes of versions. */
  def begin(key: UnsafeRow, changes: OrderedChanges): Unit = {
    rows.load(key)
    this.changes = changes
    run = 0
    stored = null
  }

  /** Does the next part of the work. Returns false when the join key is done. */
  def step(): Boolean =
    if (stored != null) {
      stepRow()
      true
    } else if (beginRun()) true
    else {
      versions.save()
      rows.save()
      false
    }

  /** Moves to the next run with work. Returns false after the last run. */
  private def beginRun(): Boolean = {
    var isFound = false
    while (!isFound && run < math.max(1, rows.numRuns)) {
      until = if (run + 1 < rows.numRuns) rows.bound(run + 1) else null
      val changes = isWithin(this.changes.first)
      if (changes || emits && run < rows.numRuns && mayDiffer()) {
        stored = if (run < rows.numRuns) rows.read(run) else SortedRun.empty
        at = 0
        rewrite = if (changes) rows.rewrite(run) else null
        isFound = true
      } else run += 1
    }
    isFound
  }

  private def mayDiffer(): Boolean =
    !versions.areSame && versions.mayDiffer(
      if (run == 0) None else Some(timeOf(rows.bound(run))),
      Option(until).map(timeOf))

  private def isWithin(change: SignedRow): Boolean =
    change != null && (until == null || order.compare(change.row, until) < 0)

  private def stepRow(): Unit = {
    val change = if (rewrite == null) null else changes.first
    val row = if (at < stored.size) stored.rows(at) else null
    val compared =
      if (!isWithin(change)) -1 else if (row == null) 1 else order.compare(row, change.row)
    if (row == null && !isWithin(change)) {
      run += (if (rewrite == null) 1 else rewrite.finish())
      stored = null
    } else if (compared > 0) {
      changes.removeFirst()
      if (timeOf(change.row) == null) emitUnmatched(change.row, change.count)
      else put(change.row, 0, change.count)
    } else {
      if (compared == 0) changes.removeFirst()
      put(row, stored.counts(at), if (compared == 0) change.count else 0)
      at += 1
    }
  }

  private def put(row: UnsafeRow, count: Long, delta: Long): Unit = {
    val after = count + delta
    unmatched.note(count, after, s"${side.time.name} = ${timeOf(row)}")
    if (emits) emit(row, math.max(0L, count), math.max(0L, after))
    if (rewrite != null && after != 0) rewrite.add(row, after)
  }

  private def emit(row: UnsafeRow, before: Long, after: Long): Unit = {
    val time = timeOf(row)
    val was = if (before > 0) matchOf(row, time, isAfter = false) else null
    val is = if (after > 0) matchOf(row, time, isAfter = true) else null
    val (copiesBefore, copiesAfter) =
      (if (was == null) 0L else before, if (is == null) 0L else after)
    if (was eq is) output.recount(row, is, copiesBefore, copiesAfter)
    else output.replace(row, was, copiesBefore, row, is, copiesAfter)
  }

  /** Emits the copies of a final row. */
  def emitFinal(row: UnsafeRow, count: Long): Unit = {
    val version = matchOf(row, timeOf(row), isAfter = true)
    if (version != null && count > 0) output.recount(row, version, 0, count)
  }

  /** Emits left rows for which no version can exist. */
  def emitUnmatched(row: InternalRow, delta: Long): Unit =
    if (paddingIfUnmatched != null) {
      output.recount(row, paddingIfUnmatched, math.max(0L, -delta), math.max(0L, delta))
    }

  private def matchOf(row: UnsafeRow, time: Any, isAfter: Boolean): InternalRow = {
    val version = versions.find(time, isAfter)
    val isFound =
      version != null && (predicate == null || predicate.eval(joined(row, version)))
    if (isFound) version else paddingIfUnmatched
  }

  private def timeOf(row: UnsafeRow): Any =
    if (row.isNullAt(side.timeOrdinal)) null else row.get(side.timeOrdinal, side.time.dataType)
}
