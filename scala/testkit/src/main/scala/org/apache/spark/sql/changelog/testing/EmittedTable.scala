// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable

import org.apache.spark.sql.Row

/**
 * Replays a query's emitted changes into an empty table. Checks that each retraction matches a row, and that
 * each batch's changelog is minimal.
 */
private[testing] class EmittedTable(variant: Variant) {
  private val isUpsert = variant.mode == "upsert"
  private val replayed = new RowMultiset
  private val upserted = mutable.Map.empty[Seq[Any], Row]

  /** The names of the result's columns. */
  var columns: Seq[String] = Nil

  def rows: RowMultiset = if (isUpsert) RowMultiset.of(upserted.values) else replayed

  /** Adds initial rows, in the current columns. */
  def begin(rows: Iterable[Row]): Unit =
    if (isUpsert) rows.foreach(row => upserted(keyOf(row)) = row)
    else rows.foreach(replayed.add(_, 1))

  /** Replays the changes of a batch. */
  def add(changes: Seq[Change]): Unit =
    if (isUpsert) {
      changes.foreach(upsert)
      checkOneChangePerKey(changes)
    } else {
      changes.foreach(replayed.replay)
      checkMinimal(changes)
      checkPairs(changes)
    }

  private def upsert(change: Change): Unit = {
    assert(change.kind != "-U", s"$change in upsert mode")
    val key = keyOf(change.row)
    if (change.isRetraction) {
      assert(upserted.contains(key), s"$change takes back a row that is not there")
      upserted -= key
    } else upserted(key) = change.row
  }

  private def checkOneChangePerKey(changes: Seq[Change]): Unit =
    changes.groupBy(change => keyOf(change.row)).foreach { case (key, same) =>
      assert(same.size == 1, s"key $key changes more than once: ${same.mkString(", ")}")
    }

  private def keyOf(row: Row): Seq[Any] =
    RowMultiset.normalize(Row.fromSeq(variant.key.map(name => row.get(columns.indexOf(name)))))

  /** Checks that a batch does not retract and insert the same row. */
  private def checkMinimal(changes: Seq[Change]): Unit = {
    val (gone, come) = changes.partition(_.isRetraction)
    val both =
      gone.map(_.row).map(RowMultiset.withSigns).toSet &
        come.map(_.row).map(RowMultiset.withSigns).toSet
    assert(both.isEmpty, s"both taken back and given: ${both.mkString(", ")}")
  }

  /** Checks that each `-U` is followed by its `+U`. */
  private def checkPairs(changes: Seq[Change]): Unit = {
    val unpaired = changes.map(_.kind).mkString(" ").replace("-U +U", "")
    assert(!unpaired.contains("U"), s"an update has only one half: ${changes.mkString(", ")}")
  }
}
