// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import java.util.{ArrayDeque, Comparator, LinkedHashMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  RowOrdering,
  UnsafeProjection,
  UnsafeRow
}

import org.apache.spark.sql.changelog.RowKind

/** By how many copies of a row there are more than before. */
private[temporal] final case class NetChange(row: UnsafeRow, delta: Long)

/**
 * Nets the changes of one side and one join key, which come in order.
 *
 * @param input
 *   the columns they come with, the row kind among them
 */
private[temporal] final class OrderedChanges(
    side: TemporalSideLayout,
    input: Seq[Attribute],
    order: Comparator[UnsafeRow]) {
  private val columnsOf = UnsafeProjection.create(side.columns, input)
  private val sorted = RowOrdering.create(side.order, side.columns)
  private val kindOrdinal = RowKind.ordinal(side.joined.kind, input)

  private var changes: Iterator[InternalRow] = Iterator.empty
  private val ready = new ArrayDeque[NetChange]
  // the first row after those that are ready
  private var pending: UnsafeRow = _
  private var pendingSign = 0L

  /** Goes to the changes of another join key. */
  def begin(changes: Iterator[InternalRow]): Unit = {
    this.changes = changes
    advance()
  }

  /** The next change; null if there is none. */
  def first: NetChange = {
    while (ready.isEmpty && pending != null) gather()
    ready.peekFirst()
  }

  def removeFirst(): Unit = {
    ready.removeFirst()
    ()
  }

  private def advance(): Unit =
    if (changes.hasNext) {
      val change = changes.next()
      pending = columnsOf(change).copy()
      pendingSign = RowKind.sign(RowKind.at(change, kindOrdinal))
    } else pending = null

  /** Nets rows that Spark's sort finds equal; they are the same but for their bytes. */
  private def gather(): Unit = {
    val first = pending
    var delta = pendingSign
    advance()
    while (pending != null && pending == first) {
      delta += pendingSign
      advance()
    }
    if (pending == null || sorted.compare(first, pending) != 0) {
      if (delta != 0) ready.add(NetChange(first, delta))
    } else {
      val deltas = new LinkedHashMap[UnsafeRow, Long]
      deltas.put(first, delta)
      while (pending != null && sorted.compare(first, pending) == 0) {
        deltas.merge(pending, pendingSign, (a, b) => a + b)
        advance()
      }
      deltas.asScala.toSeq
        .filter(_._2 != 0)
        .sortWith((a, b) => order.compare(a._1, b._1) < 0)
        .foreach { case (row, delta) => ready.add(NetChange(row, delta)) }
    }
  }
}
