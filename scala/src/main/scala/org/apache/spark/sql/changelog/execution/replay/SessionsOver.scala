// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import java.util.{Comparator, LinkedHashSet}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.execution.EventTimeBound

/**
 * Removes the rows of sessions that have ended, when no row that is in time can reach them.
 *
 * {{{
 *   rows of a key      [10:00, 10:05) [10:03, 10:08)   [10:20, 10:25)
 *   sessions           [10:00,               10:08)    [10:20, 10:25)
 *   watermark                               10:08
 *   removed            both rows of the first
 * }}}
 *
 * A row that comes later begins after the watermark, and so after the session's end. As in Spark,
 * a row that begins at the very end of a session belongs to it.
 *
 * @param session
 *   the column with the session a row begins
 * @param watermark
 *   in ms
 */
private[replay] final class SessionsOver(
    layout: ReplayLayout,
    session: Attribute,
    store: StateStore,
    watermark: Long) {
  private val end = EventTimeBound.inMicros(watermark)
  private val ordinal = layout.key.indexWhere(_.exprId == session.exprId)
  private val prefixOf =
    GenerateUnsafeProjection.generate(layout.key.take(layout.numPrefixColumns), layout.key)

  private def beginOf(row: UnsafeRow): Long = row.getStruct(ordinal, 2).getLong(0)

  private def endOf(row: UnsafeRow): Long = row.getStruct(ordinal, 2).getLong(1)

  private val byBegin: Comparator[(UnsafeRow, Long)] = (left, right) =>
    java.lang.Long.compare(beginOf(left._1), beginOf(right._1))

  /** The rows, each with its count; they are removed as they are read. */
  def remove(): Iterator[(UnsafeRow, Long)] = partitions.iterator.asScala.flatMap { partition =>
    val over = ended(rowsOf(partition))
    over.foreach { case (row, _) => store.remove(row) }
    over
  }

  /** The partitions in which a session may have ended. */
  private def partitions: LinkedHashSet[UnsafeRow] = {
    val found = new LinkedHashSet[UnsafeRow]
    val entries = store.iterator()
    try {
      entries.foreach { entry =>
        if (endOf(entry.key) <= end) {
          val partition = prefixOf(entry.key)
          if (!found.contains(partition)) found.add(partition.copy())
        }
      }
    } finally entries.close()
    found
  }

  private def rowsOf(partition: UnsafeRow): Array[(UnsafeRow, Long)] = {
    val entries = store.prefixScan(partition)
    try entries.map(entry => (entry.key.copy(), entry.value.getLong(0))).toArray
    finally entries.close()
  }

  private def ended(rows: Array[(UnsafeRow, Long)]): Seq[(UnsafeRow, Long)] = {
    // what was taken back but never given is in no session
    val (seen, unseen) = rows.partition(_._2 > 0)
    java.util.Arrays.sort(seen, byBegin)
    val over = mutable.ArrayBuffer.from(unseen.filter { case (row, _) => endOf(row) <= end })
    val current = mutable.ArrayBuffer.empty[(UnsafeRow, Long)]
    var currentEnd = Long.MinValue
    def close(): Unit = {
      if (currentEnd <= end) over ++= current
      current.clear()
    }
    seen.foreach { entry =>
      if (beginOf(entry._1) > currentEnd) {
        close()
        currentEnd = endOf(entry._1)
      } else currentEnd = math.max(currentEnd, endOf(entry._1))
      current += entry
    }
    close()
    over.toSeq
  }
}

private[replay] object SessionsOver {

  /** Whether a row begins its session at or before a watermark, in ms. */
  def beginsBefore(session: Attribute, watermark: Long): Expression = {
    val begin = GetStructField(session, 0)
    LessThanOrEqual(begin, Literal(EventTimeBound.inMicros(watermark), begin.dataType))
  }
}
