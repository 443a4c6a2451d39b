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
    rows: OrderedRows,
    order: Comparator[UnsafeRow],
    allowsEqual: Boolean,
    unmatched: UnmatchedRetractions) {
  private val side = rows.side
  private val times = TypeUtils.getInterpretedOrdering(side.time.dataType)

  /** The versions of a run, with the number of copies of each before and after the batch. */
  private final class ChangedRun(
      val rows: Array[UnsafeRow],
      val before: Array[Long],
      val after: Array[Long])

  private val changed = mutable.TreeMap.empty[Int, ChangedRun]
  // spans of time, each from an inserted or removed version to the next unchanged version
  private val spans = new mutable.ArrayBuffer[(Any, Option[Any])]
  private var cachedRun = -1
  private var cached: ChangedRun = _

  def load(key: UnsafeRow, changes: OrderedChanges): Unit = {
    rows.load(key)
    changed.clear()
    spans.clear()
    cachedRun = -1
    var run = 0
    while (changes.first != null) {
      val isLast = run >= rows.numRuns - 1
      if (isLast || order.compare(changes.first.row, rows.bound(run + 1)) < 0) {
        changed(run) = merged(run, changes, if (isLast) null else rows.bound(run + 1))
      }
      run += 1
    }
    if (changed.nonEmpty) findSpans()
  }

  private def merged(run: Int, changes: OrderedChanges, until: UnsafeRow): ChangedRun = {
    val stored = if (run < rows.numRuns) rows.read(run) else SortedRun.empty
    val (versions, before, after) = (
      new mutable.ArrayBuffer[UnsafeRow],
      new mutable.ArrayBuffer[Long],
      new mutable.ArrayBuffer[Long])
    def add(row: UnsafeRow, count: Long, delta: Long): Unit = {
      versions += row
      before += count
      after += count + delta
      unmatched.note(count, count + delta, s"${side.time.name} = ${timeOf(row)}")
    }
    var at = 0
    def isWithin(change: NetChange) =
      change != null && (until == null || order.compare(change.row, until) < 0)
    while (at < stored.size || isWithin(changes.first)) {
      val change = changes.first
      val compared =
        if (!isWithin(change)) -1
        else if (at == stored.size) 1
        else order.compare(stored.rows(at), change.row)
      if (compared < 0) {
        add(stored.rows(at), stored.counts(at), 0)
        at += 1
      } else if (compared == 0) {
        add(stored.rows(at), stored.counts(at), change.delta)
        at += 1
        changes.removeFirst()
      } else {
        // a row with NULL as time is no version
        if (timeOf(change.row) != null) add(change.row, 0, change.delta)
        changes.removeFirst()
      }
    }
    new ChangedRun(versions.toArray, before.toArray, after.toArray)
  }

  private def findSpans(): Unit = {
    var from: Any = null
    var next = 0
    def scan(run: Int): Unit = {
      val versions = at(run)
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
    changed.keys.foreach { run =>
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
    if (rows.numRuns == 0 && changed.nonEmpty) run = 0
    var found: UnsafeRow = null
    while (found == null && run >= 0) {
      val versions = at(run)
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

  private def at(run: Int): ChangedRun = changed.getOrElse(
    run, {
      if (cachedRun != run) {
        val stored = rows.read(run)
        cached = new ChangedRun(stored.rows, stored.counts, stored.counts)
        cachedRun = run
      }
      cached
    })

  /** Compares times in storage order. */
  private def compare(a: Any, b: Any): Int =
    if (side.isForward) times.compare(b, a) else times.compare(a, b)

  private def timeOf(row: UnsafeRow): Any =
    if (row.isNullAt(side.timeOrdinal)) null else row.get(side.timeOrdinal, side.time.dataType)

  def save(): Unit = {
    // the last run first, because a rewrite changes the index of later runs
    changed.toSeq.reverse.foreach { case (run, versions) =>
      val rewrite = rows.rewrite(run)
      versions.rows.indices.foreach { index =>
        if (versions.after(index) != 0) rewrite.add(versions.rows(index), versions.after(index))
      }
      rewrite.finish()
    }
    rows.save()
  }

  /** Loads a join key without changes of versions. */
  def view(key: UnsafeRow): Unit = {
    rows.load(key)
    changed.clear()
    spans.clear()
    cachedRun = -1
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
