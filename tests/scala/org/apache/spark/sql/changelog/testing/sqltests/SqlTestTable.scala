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
    val kept = new RetractTable()
    batches.take(batch + 1).foreach(_(table).foreach(kept.add))
    kept.rows
  }
}

object Arrival {
  private val NumRandom = 3

  /**
   * Ways for rows to arrive, the roughest first: several at random, of which some rows are wrong at
   * first; one at random of right rows only; and all at once, as there are queries that fail over
   * some of the rows only.
   */
  def all(tables: Seq[SqlTestTable], seed: Long): Seq[Arrival] = {
    val draw = new Random(seed)
    def random(name: String, isWrong: Boolean): Arrival = {
      val numBatches = 2 + draw.nextInt(4)
      val ofTables = draw.nextLong()
      arrival(name, tables, numBatches) { table =>
        val random = new Random(ofTables + table.name.hashCode)
        new RandomArrival(table, numBatches, isWrong, random).changes
      }
    }
    (1 to NumRandom).map(number => random(s"random $number", isWrong = true)) ++ Seq(
      random("right rows", isWrong = false),
      arrival("at once", tables, numBatches = 2)(atOnce))
  }

  /** The ways in which to try a query, the first for which batch Spark has answers all along. */
  def of(arrivals: Seq[Arrival], number: Int): Seq[Arrival] = {
    val (before, after) = arrivals.take(NumRandom).splitAt(number % NumRandom)
    after ++ before ++ arrivals.drop(NumRandom)
  }

  private def arrival(name: String, tables: Seq[SqlTestTable], numBatches: Int)(
      changes: SqlTestTable => Seq[(Int, Change)]): Arrival = {
    val byTable = tables.map { table =>
      table.name -> changes(table).groupMap(_._1)(_._2)
    }
    new Arrival(
      s"$name, $numBatches batches",
      (0 until numBatches).map(batch =>
        byTable.map { case (table, parts) => table -> parts.getOrElse(batch, Nil) }.toMap))
  }

  private def atOnce(table: SqlTestTable): Seq[(Int, Change)] = {
    val last = table.rows.lastOption.toSeq
    table.rows.map(0 -> Change("+I", _)) ++
      last.map(1 -> Change("-D", _)) ++ last.map(1 -> Change("+I", _))
  }
}
