// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable

import org.apache.spark.sql.Row

/** The table that results from a feed's changes, computed by the oracle in a simple way. */
sealed abstract class FeedTable {
  private val arrived = mutable.ArrayBuffer.empty[Change]

  def add(change: Change): Unit = {
    arrived += change
    apply(change)
  }

  def changes: Seq[Change] = arrived.toSeq

  def rows: Seq[Row]

  protected def apply(change: Change): Unit
}

/**
 * A table of a feed with full rows. Keeps arrival order, so that both runs break ties equally. An insert after
 * its unmatched retraction has no effect. Unless `insertOnly`, -0.0 is read as 0.0.
 */
final class RetractTable(insertOnly: Boolean = false) extends FeedTable {
  private val table = mutable.ArrayBuffer.empty[Row]
  private val awaited = new RowMultiset

  override def rows: Seq[Row] = table.toSeq

  override protected def apply(change: Change): Unit =
    if (change.isRetraction) {
      lazy val gone = RowMultiset.normalize(change.row)
      val same = table.lastIndexOf(change.row)
      val at =
        if (same >= 0) same else table.lastIndexWhere(RowMultiset.normalize(_) == gone)
      if (at >= 0) table.remove(at) else awaited.add(change.row, 1)
    } else if (awaited.count(change.row) > 0) awaited.add(change.row, -1)
    else table += (if (insertOnly) change.row else RetractTable.read(change.row))
}

private object RetractTable {

  def read(row: Row): Row = Row.fromSeq(row.toSeq.map(withoutSign))

  private def withoutSign(value: Any): Any = value match {
    case value: Double if value == 0.0 => 0.0
    case value: Float if value == 0.0f => 0.0f
    case nested: Row => read(nested)
    case elements: scala.collection.Seq[_] => elements.map(withoutSign)
    case other => other
  }
}

/**
 * A table of an upsert feed: the newest row per key, by sequence, then by arrival. With an equal sequence, an
 * update's before image is older, whatever the arrival order.
 */
final class UpsertTable(feed: Feed) extends FeedTable {
  private val newest = mutable.LinkedHashMap.empty[RowMultiset, Change]

  override def rows: Seq[Row] = newest.values.filterNot(_.isRetraction).map(_.row).toSeq

  override protected def apply(change: Change): Unit = {
    val key = RowMultiset.of(Seq(Row.fromSeq(values(change, feed.key))))
    if (!newest.get(key).exists(isNewer(_, change))) newest(key) = change
  }

  private def isNewer(known: Change, change: Change): Boolean = {
    val differing = feed.sequence.map(Seq(_)).map { column =>
      compare(values(known, column).head, values(change, column).head)
    }
    val order = differing.find(_ != 0).getOrElse(0)
    order > 0 || (order == 0 && feed.sequence.nonEmpty && change.kind == "-U")
  }

  private def values(change: Change, columns: Seq[String]): Seq[Any] =
    columns.map(column => change.row.get(feed.schema.fieldIndex(column)))

  private def compare(left: Any, right: Any): Int = (left, right) match {
    case (null, null) => 0
    case (null, _) => -1
    case (_, null) => 1
    case (left: Comparable[_], right) => left.asInstanceOf[Comparable[Any]].compareTo(right)
    case other => throw new IllegalArgumentException(s"$other can't be compared")
  }
}
