// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import java.util.Comparator

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.util.TypeUtils

import org.apache.spark.sql.changelog.execution.UnmatchedRetractions

/**
 * The versions of a join key, before and after the batch.
 *
 * Call for each join key: [[load]] with the batch's changes, then [[find]] for each left row, and finally
 * [[save]].
 */
private[temporal] final class KeyVersions(
    rows: OrderedRows[TemporalSideLayout],
    order: Comparator[UnsafeRow],
    allowsEqual: Boolean,
    unmatched: UnmatchedRetractions) {
  private val side = rows.side
  private val times = TypeUtils.getInterpretedOrdering(side.time.dataType)

  private val runs = new ChangedRuns(
    rows,
    order,
    // a row with NULL as time is no version
    timeOf(_) != null,
    (row, before, after) => unmatched.note(before, after, s"${side.time.name} = ${timeOf(row)}"))
  // spans of time, each from an inserted or removed version to the next unchanged version
  private val spans = new mutable.ArrayBuffer[(Any, Option[Any])]

  def load(key: UnsafeRow, changes: OrderedChanges): Unit = {
    runs.load(key, changes)
    spans.clear()
    if (runs.changed.nonEmpty) findSpans()
  }

  private def findSpans(): Unit = {
    var from: Any = null
    var next = 0
    def scan(run: Int): Unit = {
      val versions = runs(run)
      var index = 0
      while (index < versions.rows.length) {
        val (was, is) = (versions.before(index) > 0, versions.after(index) > 0)
        val time = timeOf(versions.rows(index))
        if (was != is) {
          if (from == null) from = time
        } else if (was && from != null) {
          spans += (from -> Some(time))
          from = null
        }
        index += 1
      }
      next = run + 1
    }
    def close(until: Int): Unit = while (from != null && next < until) scan(next)
    runs.changed.foreach { run =>
      close(run)
      scan(run)
    }
    close(rows.numRuns)
    if (from != null) spans += (from -> None)
  }

  /** Returns whether rows at a time from `from` to `until` may have another version than before. */
  def mayDiffer(from: Option[Any], until: Option[Any]): Boolean = spans.exists {
    case (first, last) =>
      until.forall(compare(first, _) <= 0) && from.forall(time =>
        last.forall(compare(time, _) <= 0))
  }

  /** Whether every left row has the same version as before. */
  def areSame: Boolean = spans.isEmpty

  /** Returns the version valid at a time, before or after the batch; null without a version. */
  def find(time: Any, isAfter: Boolean): UnsafeRow = {
    var run = lastReached(rows.numRuns, run => run == 0 || isReached(rows.bound(run), time))
    if (rows.numRuns == 0 && runs.changed.nonEmpty) run = 0
    var found: UnsafeRow = null
    while (found == null && run >= 0) {
      val versions = runs(run)
      val counts = if (isAfter) versions.after else versions.before
      var index =
        lastReached(versions.rows.length, index => isReached(versions.rows(index), time))
      while (index >= 0 && counts(index) <= 0) index -= 1
      if (index >= 0) found = versions.rows(index)
      run -= 1
    }
    found
  }

  /**
   * Returns the last index below `size` for which `reached` holds; -1 if none. `reached` must hold for each
   * index before it.
   */
  private def lastReached(size: Int, reached: Int => Boolean): Int = {
    var (low, high) = (0, size)
    while (low < high) {
      val middle = (low + high) >>> 1
      if (reached(middle)) low = middle + 1 else high = middle
    }
    low - 1
  }

  private def isReached(version: UnsafeRow, time: Any): Boolean = {
    val compared = compare(timeOf(version), time)
    compared < 0 || allowsEqual && compared == 0
  }

  /** Compares times in storage order. */
  private def compare(a: Any, b: Any): Int =
    if (side.isForward) times.compare(b, a) else times.compare(a, b)

  private def timeOf(row: UnsafeRow): Any =
    if (row.isNullAt(side.timeOrdinal)) null else row.get(side.timeOrdinal, side.time.dataType)

  def save(): Unit = runs.save()

  /** Loads a join key without changes of versions. */
  def view(key: UnsafeRow): Unit = {
    runs.view(key)
    spans.clear()
  }

  /** Removes the versions before the version valid at `time`. */
  def forgetBefore(time: Any): Unit = {
    val version = find(time, isAfter = true)
    var isDone = version == null
    while (!isDone) {
      val run = rows.read(0)
      val numObsolete = run.rows.indexWhere(order.compare(_, version) >= 0)
      if (numObsolete < 0) rows.remove(0)
      else {
        if (numObsolete > 0) {
          val rewrite = rows.rewrite(0)
          (numObsolete until run.size).foreach(index =>
            rewrite.add(run.rows(index), run.counts(index)))
          rewrite.finish()
        }
        isDone = true
      }
    }
    rows.save()
  }
}
