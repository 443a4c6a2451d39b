// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.sqltests

import scala.util.Random

import org.apache.spark.sql.Row
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.testing.{Change, RetractTable}

/** A table of a test file: the rows that its statements put there. */
final case class SqlTestTable(name: String, schema: StructType, rows: Seq[Row])

/**
 * How the rows of tables arrive.
 *
 * @param batches
 *   for each batch the changes by table
 */
final class Arrival(val name: String, val batches: Seq[Map[String, Seq[Change]]]) {

  /** The rows of a table after a batch. */
  def rowsAfter(batch: Int, table: String): Seq[Row] = {
    val kept = new RetractTable
    batches.take(batch + 1).foreach(_(table).foreach(kept.add))
    kept.rows
  }
}

object Arrival {

  /**
   * Ways for rows to arrive, the roughest first: half of them twice, of which one is taken back; some
   * wrong at first; and all at once, as there are queries that fail over some of the rows only.
   */
  def all(tables: Seq[SqlTestTable], seed: Long): Seq[Arrival] = {
    def arrival(name: String)(batches: (SqlTestTable, Random) => Seq[Seq[Change]]) = {
      val changes = tables.map { table =>
        table.name -> batches(table, new Random(seed + table.name.hashCode))
      }
      val numBatches = changes.map(_._2.size).maxOption.getOrElse(0)
      new Arrival(
        name,
        (0 until numBatches).map(batch =>
          changes.map { case (table, parts) => table -> parts.lift(batch).getOrElse(Nil) }.toMap))
    }
    Seq(
      arrival("surplus")(surplus),
      arrival("corrected")(corrected),
      arrival("at once")((table, _) => atOnce(table)))
  }

  private def surplus(table: SqlTestTable, random: Random): Seq[Seq[Change]] = {
    val (half, rest) = split(random.shuffle(table.rows))
    val (right, mended) = rest.partition(_ => random.nextInt(3) > 0)
    val wrong = mended.map(mix(_, table.rows, random))
    if (table.rows.isEmpty) passing(table).map(Seq(_))
    else
      Seq(
        (half ++ half ++ wrong).map(Change("+I", _)),
        half.map(Change("-D", _)) ++ updates(wrong, mended) ++ right.map(Change("+I", _)))
  }

  private def corrected(table: SqlTestTable, random: Random): Seq[Seq[Change]] = {
    val (early, late) = split(random.shuffle(table.rows))
    val wrong = early.map(row => if (random.nextBoolean()) mix(row, table.rows, random) else row)
    val changed = wrong.zip(early).filter { case (before, after) => before != after }
    val (before, after) = changed.unzip
    val gone = late.take(1)
    Seq(
      (wrong ++ gone).map(Change("+I", _)),
      updates(before, after) ++ gone.map(Change("-D", _)) ++ late.map(Change("+I", _)))
  }

  private def atOnce(table: SqlTestTable): Seq[Seq[Change]] = {
    val last = table.rows.lastOption.toSeq
    Seq(table.rows.map(Change("+I", _)), last.map(Change("-D", _)) ++ last.map(Change("+I", _)))
  }

  private def split(rows: Seq[Row]): (Seq[Row], Seq[Row]) = rows.splitAt((rows.size + 1) / 2)

  /** A row that comes and goes, for a table that is empty in the end. */
  private def passing(table: SqlTestTable): Seq[Change] = {
    val row = Row.fromSeq(table.schema.map(_ => null))
    Seq(Change("+I", row), Change("-D", row))
  }

  private def updates(before: Seq[Row], after: Seq[Row]): Seq[Change] =
    before.zip(after).flatMap { case (old, now) => Seq(Change("-U", old), Change("+U", now)) }

  /** A row with one column of another row. */
  private def mix(row: Row, rows: Seq[Row], random: Random): Row = {
    val column = random.nextInt(row.size.max(1))
    val other = rows(random.nextInt(rows.size))
    if (row.size == 0) row else Row.fromSeq(row.toSeq.updated(column, other.get(column)))
  }
}
