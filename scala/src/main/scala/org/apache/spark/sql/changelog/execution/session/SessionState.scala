// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.session

import java.util.{Arrays, Comparator}

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.execution.streaming.state.{StateStore, UnsafeRowPair}

import org.apache.spark.sql.changelog.execution.expiry.EntryTimes
import org.apache.spark.sql.changelog.execution.{DistinctRows, UnaryChangelogStateWriter}

/**
 * Computes sessions from stored entries. Each entry is the session of a single row, or a merged session.
 *
 * {{{
 *   entries of a key   [10:00, 10:05) [10:03, 10:08)   [10:20, 10:25)
 *   sessions           [10:00,               10:08)    [10:20, 10:25)
 *   watermark                               10:08
 *   removed            both entries of the first
 * }}}
 *
 * A session that ends at or before the watermark is final if no later change can overlap with it. Two kinds of
 * changes cannot: a change that begins after the watermark, and a change that begins within an open session.
 * The closed session ended before that open session began. As in Spark, a row that begins at the exact end of a
 * session belongs to the session.
 *
 * @param key
 *   the columns of the state's key
 * @param numPrefixColumns
 *   the number of leading key columns that form the partition of sessions
 * @param session
 *   the key column with the session
 * @param isVisible
 *   returns whether an entry with this value is visible; false after an unmatched retraction
 */
private[execution] final class SessionState(
    key: Seq[Attribute],
    numPrefixColumns: Int,
    session: Attribute,
    store: StateStore,
    isVisible: UnsafeRow => Boolean) {
  import SessionState._

  private val ordinal = key.indexWhere(_.exprId == session.exprId)
  private val prefixOf = UnsafeProjection.create(key.take(numPrefixColumns), key)
  private val byBegin: Comparator[Entry] = (left, right) =>
    java.lang.Long.compare(beginOf(left.key), beginOf(right.key))

  private var lastPartition: UnsafeRow = _
  private var lastSessions: Seq[Session] = Nil

  /** Returns the begin of the session in a key, in microseconds. */
  def beginOf(key: UnsafeRow): Long = key.getStruct(ordinal, 2).getLong(0)

  /** Returns the end of the session in a key, in microseconds. */
  def endOf(key: UnsafeRow): Long = key.getStruct(ordinal, 2).getLong(1)

  /**
   * Returns whether a change of a row with this key is late.
   *
   * @param watermark
   *   the watermark, in microseconds
   */
  def isLate(row: UnsafeRow, watermark: Long): Boolean = beginOf(row) <= watermark && {
    val partition = prefixOf(row)
    if (partition != lastPartition) {
      lastPartition = partition.copy()
      lastSessions = sessions(entries(lastPartition).filter(entry => isVisible(entry.value)))
    }
    val begin = beginOf(row)
    !lastSessions.exists(session => session.begin <= begin && begin <= session.end)
  }

  /**
   * Removes and returns the entries of closed sessions.
   *
   * @param due
   *   entries that ended since the watermark last moved, and entries that affect others
   * @param watermark
   *   the watermark, in microseconds
   */
  def removeEnded(due: Iterator[UnsafeRowPair], watermark: Long): Iterator[Entry] =
    DistinctRows(due.map(entry => prefixOf(entry.key))).iterator.flatMap { partition =>
      // an entry of an unmatched retraction is in no session
      val (there, others) = entries(partition).partition(entry => isVisible(entry.value))
      val ended = sessions(there).filter(_.end <= watermark).flatMap(_.entries) ++
        others.filter(entry => endOf(entry.key) <= watermark)
      ended.foreach(entry => store.remove(entry.key))
      ended
    }

  /**
   * Returns the sessions in the partition of `key` that overlap with the session from `begin` to `end`. Each
   * entry must be a whole session.
   */
  def reachedBy(key: UnsafeRow, begin: Long, end: Long): Array[Entry] =
    entries(prefixOf(key)).filter(entry => beginOf(entry.key) <= end && begin <= endOf(entry.key))

  private def entries(partition: UnsafeRow): Array[Entry] = {
    val found = store.prefixScan(partition)
    try found.map(entry => new Entry(entry.key.copy(), entry.value.copy())).toArray
    finally found.close()
  }

  private def sessions(entries: Array[Entry]): Seq[Session] = {
    Arrays.sort(entries, byBegin)
    val found = mutable.ArrayBuffer.empty[Session]
    entries.foreach { entry =>
      val (begin, end) = (beginOf(entry.key), endOf(entry.key))
      found.lastOption match {
        case Some(session) if begin <= session.end =>
          session.end = math.max(session.end, end)
          session.entries += entry
        case _ => found += new Session(begin, end, mutable.ArrayBuffer(entry))
      }
    }
    found.toSeq
  }
}

private[execution] object SessionState {

  /**
   * Returns the times of entries, for sessions of several entries: the time given by `ofKey`, or at once if a
   * session may have become shorter.
   */
  def times(ofKey: EntryTimes, isVisible: UnsafeRow => Boolean): EntryTimes = new EntryTimes {
    override def dueAt(key: UnsafeRow, value: UnsafeRow, after: Long): Long =
      ofKey.dueAt(key, value, after)

    override def affectsOtherDeadlines(value: UnsafeRow): Boolean =
      value == null || !isVisible(value)
  }

  /** A copy of an entry of the state. */
  final class Entry(val key: UnsafeRow, val value: UnsafeRow)

  private final class Session(
      val begin: Long,
      var end: Long,
      val entries: mutable.ArrayBuffer[Entry])
}

/** An operator whose state holds sessions closed by a watermark. */
private[execution] trait SessionStateWriter extends UnaryChangelogStateWriter {

  /** Whether changes that could overlap with a closed session are dropped as late. */
  def dropsLate: Boolean

  /**
   * Returns a function that tells whether a row, by its key, could overlap with a closed session, and counts
   * such rows.
   */
  protected def lateSessions(sessions: SessionState): UnsafeRow => Boolean =
    eventTimeBound.flatMap(_.late).filter(_ => dropsLate) match {
      case Some(late) =>
        val watermark = DateTimeUtils.millisToMicros(late)
        val numDropped = longMetric("numRowsDroppedByWatermark")
        key => {
          val isLate = sessions.isLate(key, watermark)
          if (isLate) numDropped += 1
          isLate
        }
      case None => _ => false
    }

  /** Removes the state of sessions that no further change can reach. */
  protected def removeEnded(
      store: StateStore,
      sessions: SessionState): Iterator[SessionState.Entry] =
    eventTimeBound.flatMap(_.moved) match {
      case Some(moved) =>
        sessions.removeEnded(entriesDue(store, moved), DateTimeUtils.millisToMicros(moved))
      case None => Iterator.empty
    }
}
