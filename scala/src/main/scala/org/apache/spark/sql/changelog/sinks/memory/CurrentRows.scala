// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.memory

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.sources.MemorySink

/**
 * The current rows of a query, in the form of Spark's memory sink.
 *
 * A reader sees the rows after one complete batch.
 */
class CurrentRows extends MemorySink {
  private val rows = mutable.LinkedHashMap.empty[UnsafeRow, CurrentRows.Counted]
  private var written: Option[(String, Long)] = None

  /** Returns the query and the number of the last applied batch. */
  def lastBatch: Option[(String, Long)] = synchronized(written)

  override def allData: Seq[Row] = synchronized {
    rows.values.flatMap(counted => Iterator.fill(counted.count)(counted.row)).toIndexedSeq
  }

  /** Adds and subtracts rows. A row is repeated by its count. */
  def count(queryId: String, batchId: Long, changes: Iterator[(UnsafeRow, Row, Int)]): Unit =
    apply(queryId, batchId) {
      changes.foreach { case (key, row, sign) =>
        val count = rows.get(key).map(_.count).getOrElse(0) + sign
        if (count == 0) rows -= key else rows(key) = CurrentRows.Counted(row, count)
      }
    }

  /** Replaces or deletes the rows of keys. */
  def replace(queryId: String, batchId: Long, changes: Iterator[(UnsafeRow, Option[Row])]): Unit =
    apply(queryId, batchId) {
      changes.foreach {
        case (key, Some(row)) => rows(key) = CurrentRows.Counted(row, 1)
        case (key, None) => rows -= key
      }
    }

  private def apply(queryId: String, batchId: Long)(body: => Unit): Unit = synchronized {
    if (!written.contains((queryId, batchId))) {
      body
      written = Some((queryId, batchId))
    }
  }
}

object CurrentRows {
  private case class Counted(row: Row, count: Int)

  /** The rows by name, for a restarted query. */
  private val tables = new java.util.concurrent.ConcurrentHashMap[String, CurrentRows]().asScala

  def named(name: String): CurrentRows = tables.getOrElseUpdate(name, new CurrentRows)

  /** Deletes the rows of a name. */
  def reset(name: String): CurrentRows = {
    val empty = new CurrentRows
    tables.put(name, empty)
    empty
  }
}
