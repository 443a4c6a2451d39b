// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import java.util.LinkedHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.RowsByKey

/**
 * Nets a task's changes of a batch to one element per row.
 *
 * @param columns
 *   the columns of a row
 * @param kind
 *   the row kind of a change; empty over insert-only input
 * @param placedBy
 *   columns with equal values in equal rows
 * @param input
 *   the columns of a change
 */
private[time] final class NetRows(
    val columns: Seq[Attribute],
    kind: Option[Attribute],
    placedBy: Seq[Attribute],
    input: Seq[Attribute]) {
  private val kindOrdinal = RowKind.ordinal(kind, input)
  private val rowOf = UnsafeProjection.create(columns, input)

  /** Returns changed rows with their net count. The next row overwrites the previous row. */
  def apply(changes: Iterator[InternalRow]): Iterator[(UnsafeRow, NetRow)] =
    RowsByKey(changes, placedBy, input)
      .flatMap { case (_, group) => netted(group) }
      .filter { case (_, net) => net.count != 0 }

  /** Nets changes with equal `placedBy` columns. */
  private def netted(changes: Iterator[InternalRow]): Iterator[(UnsafeRow, NetRow)] = {
    // reading the next change overwrites the row
    val first = changes.next().copy()
    if (!changes.hasNext) {
      val net = new NetRow
      net.add(RowKind.at(first, kindOrdinal))
      Iterator.single((rowOf(first), net))
    } else {
      val nets = new LinkedHashMap[UnsafeRow, NetRow]
      def add(change: InternalRow): Unit = {
        val row = rowOf(change)
        var net = nets.get(row)
        if (net == null) {
          net = new NetRow
          nets.put(row.copy(), net)
        }
        net.add(RowKind.at(change, kindOrdinal))
      }
      add(first)
      changes.foreach(add)
      nets.entrySet.iterator.asScala.map(entry => (entry.getKey, entry.getValue))
    }
  }
}

/** The number of inserts minus retractions of a row, and the row kinds of both. */
private[time] final class NetRow {
  var count = 0L
  var insertKind: Byte = RowKind.Insert
  var retractionKind: Byte = RowKind.Delete

  def add(kind: Byte): Unit = {
    count += RowKind.sign(kind)
    if (RowKind.retracts(kind)) retractionKind = kind else insertKind = kind
  }
}
