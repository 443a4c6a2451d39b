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
 * Finds the sessions that stored rows make, each row beginning one of its own, or being one.
 *
 * {{{
 *   rows of a key      [10:00, 10:05) [10:03, 10:08)   [10:20, 10:25)
 *   sessions           [10:00,               10:08)    [10:20, 10:25)
 *   watermark                               10:08
 *   removed            both rows of the first
 * }}}
 *
 * A session that ends at or before the watermark is final if every change is left out that could reach
 * it. A change does not if it begins after the watermark, or within a session that is still open: what has
 * ended ended before that began. As in Spark, a row that begins at the very end of a session belongs
 * to it.
 *
 * @param key
 *   the columns of the state's key
 * @param numPrefixColumns
 *   how many of them, from the first, sessions are found in
 * @param session
 *   that of the columns with the session a row begins
 * @param isThere
 *   whether an entry with this value counts; it does not if what it says was only taken back
 */
private[execution] final class SessionState(
    key: Seq[Attribute],
    numPrefixColumns: Int,
    session: Attribute,
    store: StateStore,
    isThere: UnsafeRow => Boolean) {
  import SessionState._

  private val ordinal = key.indexWhere(_.exprId == session.exprId)
  private val prefixOf = UnsafeProjection.create(key.take(numPrefixColumns), key)
  private val byBegin: Comparator[Entry] = (left, right) =>
    java.lang.Long.compare(beginOf(left.key), beginOf(right.key))

  private var lastPartition: UnsafeRow = _
  private var lastSessions: Seq[Session] = Nil

  /** When the session that a key says begins, in microseconds. */
  def beginOf(key: UnsafeRow): Long = key.getStruct(ordinal, 2).getLong(0)

  /** When it ends, in microseconds. */
  def endOf(key: UnsafeRow): Long = key.getStruct(ordinal, 2).getLong(1)

  /**
   * Whether a change of a row with this key would come too late.
   *
   * @param watermark
   *   in microseconds
   */
  def isLate(row: UnsafeRow, watermark: Long): Boolean = beginOf(row) <= watermark && {
    val partition = prefixOf(row)
    if (partition != lastPartition) {
      lastPartition = partition.copy()
      lastSessions = sessions(entries(lastPartition).filter(entry => isThere(entry.value)))
    }
    val begin = beginOf(row)
    !lastSessions.exists(session => session.begin <= begin && begin <= session.end)
  }

  /**
   * Removes the entries of sessions that have ended, as they are read.
   *
   * @param due
   *   entries that have ended since the watermark moved on last, and those that bear on others
   * @param watermark
   *   in microseconds
   */
  def removeEnded(due: Iterator[UnsafeRowPair], watermark: Long): Iterator[Entry] =
    DistinctRows(due.map(entry => prefixOf(entry.key))).iterator.flatMap { partition =>
      // what was taken back but never given is in no session
      val (there, others) = entries(partition).partition(entry => isThere(entry.value))
      val ended = sessions(there).filter(_.end <= watermark).flatMap(_.entries) ++
        others.filter(entry => endOf(entry.key) <= watermark)
      ended.foreach(entry => store.remove(entry.key))
      ended
    }

  /** The sessions of the partition that a key is in, each an entry, which one that begins and ends then reaches. */
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
   * When entries are due, whose sessions may be of several entries: with what `ofKey` says, and at once
   * where a session may have become shorter.
   */
  def times(ofKey: EntryTimes, isThere: UnsafeRow => Boolean): EntryTimes = new EntryTimes {
    override def dueAt(key: UnsafeRow, value: UnsafeRow, after: Long): Long =
      ofKey.dueAt(key, value, after)

    override def affectsOtherDeadlines(value: UnsafeRow): Boolean =
      value == null || !isThere(value)
  }

  /** A copy of an entry of the state. */
  final class Entry(val key: UnsafeRow, val value: UnsafeRow)

  private final class Session(
      val begin: Long,
      var end: Long,
      val entries: mutable.ArrayBuffer[Entry])
}

/** An operator whose state holds sessions that a watermark ends. */
private[execution] trait SessionStateWriter extends UnaryChangelogStateWriter {

  /** Whether changes that could reach a session that has ended come too late. */
  def dropsLate: Boolean

  /** Tells of a row's key whether it could reach a session that has ended, and counts it then. */
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

  /** Removes what is kept of the sessions that no further change can reach. */
  protected def removeEnded(
      store: StateStore,
      sessions: SessionState): Iterator[SessionState.Entry] =
    eventTimeBound.flatMap(_.moved) match {
      case Some(moved) =>
        sessions.removeEnded(entriesDue(store, moved), DateTimeUtils.millisToMicros(moved))
      case None => Iterator.empty
    }
}
