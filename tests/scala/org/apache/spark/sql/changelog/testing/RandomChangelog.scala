// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable
import scala.util.Random

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.types.DoubleType

/**
 * Draws changes of one table such that none takes back a row that is not there.
 *
 * There are inserts, also of rows that exist already; deletes; updates that move rows between
 * groups or change nothing; rows deleted and inserted again, or inserted and deleted at once; and
 * now and then most of the table goes. A retraction of -0.0 may say 0.0. Without a key the table is a bag of rows; a key is one
 * column, an `INT` or a `DOUBLE`.
 *
 * @param nullsOneIn
 *   how often a value is NULL
 */
final class RandomChangelog(
    random: Random,
    feed: Feed,
    values: RandomValues,
    nullsOneIn: Int = 9) {
  private val isKey = feed.schema.map(field => feed.key.contains(field.name))
  private val palettes = feed.schema.map { field =>
    values.palette(CharVarcharUtils.getRawType(field.metadata).getOrElse(field.dataType))
  }
  private val present = mutable.ArrayBuffer.empty[Row]
  // apart from the others, so that saved seeds draw the same rows
  private val signs = new Random(feed.name.hashCode.toLong)

  /** The next changes. */
  def next(): Seq[Change] = {
    val changes = nextOfTable()
    if (feed.upsert) changes.filterNot(_.kind == "-U").map(forgetful) else changes
  }

  /** A delete by key: what it says of other columns may be wrong. */
  private def forgetful(change: Change): Change =
    if (!change.isRetraction || random.nextBoolean()) change
    else {
      change.copy(row = Row.fromSeq(change.row.toSeq.zip(isKey).map { case (value, isKey) =>
        if (isKey) value else null
      }))
    }

  private def nextOfTable(): Seq[Change] = random.nextInt(20) match {
    case _ if feed.insertOnly || present.isEmpty => insert(newRow())
    case 0 => clear()
    case choice if choice < 8 && present.size < 40 =>
      if (feed.key.isEmpty && random.nextInt(4) == 0) insert(someRow()) else insert(newRow())
    case choice if choice < 12 => delete(someRow(), "-D")
    case choice if choice < 17 =>
      val row = someRow()
      delete(row, "-U") ++ insert(changed(row), "+U")
    case 17 =>
      val row = someRow()
      delete(row, "-D") ++ insert(if (random.nextBoolean()) row else changed(row))
    case _ =>
      val row = newRow()
      insert(row) ++ delete(row, "-D")
  }

  private def insert(row: Row, kind: String = "+I"): Seq[Change] = {
    present += row
    Seq(Change(kind, row))
  }

  private def delete(row: Row, kind: String): Seq[Change] = {
    present -= row
    Seq(Change(kind, equalTo(row)))
  }

  /** The row, in which zeros may have the other sign. */
  private def equalTo(row: Row): Row = Row.fromSeq(row.toSeq.map {
    case zero: Double if zero == 0.0 && signs.nextBoolean() => -zero
    case zero: Float if zero == 0.0f && signs.nextBoolean() => -zero
    case other => other
  })

  private def clear(): Seq[Change] = {
    val kept = random.nextInt(3)
    random.shuffle(present.toSeq).drop(kept).flatMap(delete(_, "-D"))
  }

  /** A row of the table; rather an early one, so that some rows change again and again. */
  private def someRow(): Row = present(random.nextInt(1 + random.nextInt(present.size)))

  private def newRow(): Row =
    Row.fromSeq(palettes.indices.map(column => if (isKey(column)) freeKey() else value(column)))

  /** Few keys, so that they are used again after a delete. */
  private def freeKey(): Any = {
    val used = present.map(row => normalized(row.get(isKey.indexOf(true)))).toSet
    val free = keys.filterNot(key => used.contains(normalized(key))).take(8).toSeq
    free(random.nextInt(free.size))
  }

  private def keys: Iterator[Any] = feed.schema(isKey.indexOf(true)).dataType match {
    case DoubleType =>
      val zero = if (random.nextBoolean()) 0.0 else -0.0
      Iterator(Double.NaN, zero, Double.NegativeInfinity, 1.5) ++ Iterator.from(2).map(_.toDouble)
    case _ => Iterator.from(0)
  }

  private def normalized(key: Any): Any = RowMultiset.normalize(Row(key))

  private def changed(row: Row): Row = {
    val columns = Seq.fill(1 + random.nextInt(2))(random.nextInt(row.size)).filterNot(isKey)
    Row.fromSeq(row.toSeq.zipWithIndex.map { case (old, column) =>
      if (columns.contains(column)) value(column) else old
    })
  }

  private def value(column: Int): Any = {
    val palette = palettes(column)
    if (random.nextInt(nullsOneIn) == 0) null
    else palette(random.nextInt(1 + random.nextInt(palette.size)))
  }
}
