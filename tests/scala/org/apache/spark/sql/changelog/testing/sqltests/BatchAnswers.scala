// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.sqltests

import scala.collection.mutable
import scala.util.{Random, Try}

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing.RowMultiset

/** Asks batch Spark, over the same rows in several orders. */
private[sqltests] class BatchAnswers(sessions: SqlTestSessions, seed: Long) {
  import BatchAnswers._

  private val known = mutable.Map.empty[(String, Int, Int), SparkSession]

  /** Forgets what has been set up before. */
  def reset(): Unit = known.clear()

  /** The answer over the rows that are there after a batch. */
  def apply(sql: String, arrival: Arrival, batch: Int): Try[RowMultiset] =
    ask(sql, arrival, batch, 0)

  /** Whether the answer depends on the order of rows, or is another each time. */
  def areSeveral(sql: String, arrival: Arrival, batch: Int): Boolean = {
    val answers = Orders.iterator.map(ask(sql, arrival, batch, _).toOption)
    val first = answers.next()
    answers.exists(answer => !first.zip(answer).exists { case (a, b) => SameRows(a, b) })
  }

  private def ask(sql: String, arrival: Arrival, batch: Int, order: Int): Try[RowMultiset] = {
    // all arrivals end with the same rows
    val isLast = batch == arrival.batches.size - 1
    val key = if (isLast) ("last", 0, order) else (arrival.name, batch, order)
    val session = known.getOrElseUpdate(key, create(arrival, batch, order))
    Try(RowMultiset.of(session.sql(sql).collect()))
  }

  private def create(arrival: Arrival, batch: Int, order: Int): SparkSession = {
    val session = sessions.session { (session, table) =>
      val rows = arrival.rowsAfter(batch, table.name)
      val ordered = order match {
        case 0 => rows
        case 1 => rows.reverse
        case _ => new Random(seed + order).shuffle(rows)
      }
      session
        .createDataFrame(java.util.Arrays.asList(ordered: _*), table.schema)
        .createOrReplaceTempView(table.name)
    }
    // whether Spark's own rules keep to Spark's own rules takes half of the time to see
    session.conf.set("spark.sql.planChangeValidation", "false")
    session
  }
}

private object BatchAnswers {
  private val Orders = 0 to 15
}

/** Whether results are the same, but for the last digits of DOUBLEs, which depend on the order of rows. */
private[sqltests] object SameRows {
  def apply(left: RowMultiset, right: RowMultiset): Boolean =
    left == right || rounded(left) == rounded(right)

  private def rounded(rows: RowMultiset): Map[Any, Int] =
    rows.contents.toSeq.groupMapReduce { case (row, _) => round(row) }(_._2)(_ + _)

  private def round(value: Any): Any = value match {
    case double: Double if !double.isNaN && !double.isInfinite => f"$double%.8e"
    case float: Float if !float.isNaN && !float.isInfinite => f"$float%.4e"
    case row: Row => round(row.toSeq)
    case values: scala.collection.Seq[_] => values.map(round)
    case entries: scala.collection.Set[_] => entries.map(round(_: Any))
    case (key, element) => (round(key), round(element))
    case other => other
  }
}
