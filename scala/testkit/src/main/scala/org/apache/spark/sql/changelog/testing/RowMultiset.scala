// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable

import org.apache.spark.sql.Row

/**
 * A table as a multiset of rows, to which changes are applied.
 *
 * Rows are compared as in SQL's GROUP BY: NULL equals NULL, NaN equals NaN, -0.0 equals 0.0.
 */
final class RowMultiset {
  private val counts = mutable.Map.empty[Seq[Any], Int].withDefaultValue(0)

  def count(row: Row): Int = counts(RowMultiset.normalize(row))

  def add(row: Row, delta: Int): Unit = {
    val key = RowMultiset.normalize(row)
    val count = counts(key) + delta
    if (count == 0) counts -= key else counts(key) = count
  }

  /** Applies a change. Fails for an unmatched retraction. */
  def replay(change: Change): Unit = {
    if (change.isRetraction && count(change.row) == 0) {
      throw new AssertionError(s"$change takes back a row that is not there")
    }
    add(change.row, if (change.isRetraction) -1 else 1)
  }

  def contents: Map[Seq[Any], Int] = counts.toMap

  override def equals(other: Any): Boolean = other match {
    case that: RowMultiset => contents == that.contents
    case _ => false
  }

  override def hashCode: Int = contents.hashCode

  override def toString: String = counts.toSeq
    .map { case (row, count) => s"${row.mkString(" ")} x$count" }
    .sorted
    .mkString("\n")
}

object RowMultiset {

  def of(rows: Iterable[Row]): RowMultiset = {
    val multiset = new RowMultiset
    rows.foreach(multiset.add(_, 1))
    multiset
  }

  /** Returns the row's values such that equal SQL values are equal in Scala. */
  def normalize(row: Row): Seq[Any] = row.toSeq.map(normalizeValue(_, zerosAreEqual = true))

  /** Returns the values like [[normalize]], but distinguishes -0.0 from 0.0. */
  def withSigns(row: Row): Seq[Any] = row.toSeq.map(normalizeValue(_, zerosAreEqual = false))

  private def normalizeValue(value: Any, zerosAreEqual: Boolean): Any = value match {
    case value: Double if value.isNaN => "NaN"
    case value: Float if value.isNaN => "NaN"
    case value: Double if value == 0.0 => if (zerosAreEqual) 0.0 else value.toString
    case value: Float if value == 0.0f => if (zerosAreEqual) 0.0f else value.toString
    case value: java.math.BigDecimal => value.stripTrailingZeros
    case bytes: Array[Byte] => bytes.toSeq
    case nested: Row => nested.toSeq.map(normalizeValue(_, zerosAreEqual))
    case elements: scala.collection.Seq[_] => elements.map(normalizeValue(_, zerosAreEqual)).toSeq
    case entries: scala.collection.Map[_, _] =>
      entries.toSeq.map { case (key, element) =>
        (normalizeValue(key, zerosAreEqual), normalizeValue(element, zerosAreEqual))
      }.toSet
    case other => other
  }
}
