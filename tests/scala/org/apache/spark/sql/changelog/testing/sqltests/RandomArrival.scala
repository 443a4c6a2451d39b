// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.sqltests

import scala.util.Random

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.testing.Change

/**
 * Draws how the rows of a table arrive: in any batch, some twice, of which one goes again; some go
 * and come back; some are others at first, and are corrected by updates.
 *
 * @param isWrong
 *   whether there may be rows that are not the table's in the end
 */
private[sqltests] final class RandomArrival(
    table: SqlTestTable,
    numBatches: Int,
    isWrong: Boolean,
    random: Random) {

  /** The changes, with their batches. */
  def changes: Seq[(Int, Change)] =
    if (table.rows.isEmpty) passing(Row.fromSeq(table.schema.map(_ => null)))
    else random.shuffle(table.rows).flatMap(arriving)

  private def arriving(row: Row): Seq[(Int, Change)] = {
    val (wrong, other) = if (isWrong) (mixed(row), mixed(row)) else (row, row)
    random.nextInt(6) match {
      case 0 => placed(insert(row)) ++ passing(row)
      case 1 => placed(insert(row), delete(row), insert(row))
      case 2 => placed(insert(wrong), update(wrong, row))
      case 3 => placed(insert(wrong), update(wrong, other), update(other, row))
      case 4 => placed(insert(row)) ++ passing(wrong)
      case _ => placed(insert(row))
    }
  }

  private def passing(row: Row): Seq[(Int, Change)] = placed(insert(row), delete(row))

  /** Steps in their order, each in some batch. */
  private def placed(steps: Seq[Change]*): Seq[(Int, Change)] = {
    val batches = Seq.fill(steps.size)(random.nextInt(numBatches)).sorted
    batches.zip(steps).flatMap { case (batch, changes) => changes.map(batch -> _) }
  }

  private def insert(row: Row): Seq[Change] = Seq(Change("+I", row))

  private def delete(row: Row): Seq[Change] = Seq(Change("-D", row))

  private def update(before: Row, after: Row): Seq[Change] =
    Seq(Change("-U", before), Change("+U", after))

  /** The row with one column of another row. */
  private def mixed(row: Row): Row =
    if (row.size == 0) row
    else {
      val column = random.nextInt(row.size)
      val other = table.rows(random.nextInt(table.rows.size))
      Row.fromSeq(row.toSeq.updated(column, other.get(column)))
    }
}
