// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import java.util.{Arrays, Comparator, LinkedHashSet}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.execution.streaming.state.StateStore

/**
 * Finds the sessions that stored rows make, each row beginning one of its own.
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
 * @param session
 *   the column with the session a row begins
 */
private[replay] final class SessionState(
    layout: ReplayLayout,
    session: Attribute,
    store: StateStore) {
  import SessionState._

  private val ordinal = layout.key.indexWhere(_.exprId == session.exprId)
  private val prefixOf =
    GenerateUnsafeProjection.generate(layout.key.take(layout.numPrefixColumns), layout.key)
  private val byBegin: Comparator[Entry] = (left, right) =>
    java.lang.Long.compare(beginOf(left._1), beginOf(right._1))

  private var lastPartition: UnsafeRow = _
  private var lastSessions: Seq[Session] = Nil

  private def beginOf(row: UnsafeRow): Long = row.getStruct(ordinal, 2).getLong(0)

  private def endOf(row: UnsafeRow): Long = row.getStruct(ordinal, 2).getLong(1)

  /**
   * Whether a change of a row would come too late.
   *
   * @param watermark
   *   in microseconds
   */
  def isLate(row: UnsafeRow, watermark: Long): Boolean = beginOf(row) <= watermark && {
    val partition = prefixOf(row)
    if (partition != lastPartition) {
      lastPartition = partition.copy()
      lastSessions = sessions(rowsOf(lastPartition).filter(_._2 > 0))
    }
    val begin = beginOf(row)
    !lastSessions.exists(session => session.begin <= begin && begin <= session.end)
  }

  /**
   * Removes the rows of sessions that have ended.
   *
   * @param watermark
   *   in microseconds
   * @return
   *   the rows, each with its count; they are removed as they are read
   */
  def removeEnded(watermark: Long): Iterator[Entry] =
    partitionsWithEnded(watermark).iterator.asScala.flatMap { partition =>
      // what was taken back but never given is in no session
      val (seen, unseen) = rowsOf(partition).partition(_._2 > 0)
      val ended = sessions(seen).filter(_.end <= watermark).flatMap(_.rows) ++
        unseen.filter { case (row, _) => endOf(row) <= watermark }
      ended.foreach { case (row, _) => store.remove(row) }
      ended
    }

  /** The partitions in which a session may have ended. */
  private def partitionsWithEnded(watermark: Long): LinkedHashSet[UnsafeRow] = {
    val found = new LinkedHashSet[UnsafeRow]
    val entries = store.iterator()
    try {
      entries.foreach { entry =>
        if (endOf(entry.key) <= watermark) {
          val partition = prefixOf(entry.key)
          if (!found.contains(partition)) found.add(partition.copy())
        }
      }
    } finally entries.close()
    found
  }

  private def rowsOf(partition: UnsafeRow): Array[Entry] = {
    val entries = store.prefixScan(partition)
    try entries.map(entry => (entry.key.copy(), entry.value.getLong(0))).toArray
    finally entries.close()
  }

  private def sessions(rows: Array[Entry]): Seq[Session] = {
    Arrays.sort(rows, byBegin)
    val found = mutable.ArrayBuffer.empty[Session]
    rows.foreach { entry =>
      val (begin, end) = (beginOf(entry._1), endOf(entry._1))
      found.lastOption match {
        case Some(session) if begin <= session.end =>
          session.end = math.max(session.end, end)
          session.rows += entry
        case _ => found += new Session(begin, end, mutable.ArrayBuffer(entry))
      }
    }
    found.toSeq
  }
}

private object SessionState {

  /** A row with its count. */
  type Entry = (UnsafeRow, Long)

  private final class Session(
      val begin: Long,
      var end: Long,
      val rows: mutable.ArrayBuffer[Entry])
}
