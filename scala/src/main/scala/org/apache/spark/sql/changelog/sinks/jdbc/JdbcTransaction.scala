// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.sql.Connection

import scala.collection.BufferedIterator
import scala.util.{Try, Using}

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.compat.JdbcTable

/** Writes a partition of a batch in a transaction, unless already written. */
private class JdbcTransaction(ofSpark: JdbcTable, table: TargetTable, ledger: Ledger) {

  /**
   * @param rows
   *   step, positions of NULLs in the key, row; equal steps are neighbors
   */
  def write(rows: BufferedIterator[Row], place: Ledger.Place, batchId: Long): Unit = {
    val connection = table.database.connect(ofSpark, place.partition)
    try {
      table.database.sessionStatement.foreach { sql =>
        Using.resource(connection.createStatement())(_.execute(sql))
      }
      connection.setAutoCommit(false)
      connection.setTransactionIsolation(ofSpark.isolationLevel)
      if (ledger.claim(connection, place, batchId)) {
        while (rows.hasNext) runStep(rows, connection)
        connection.commit()
      } else connection.rollback()
    } catch {
      case error: Throwable =>
        Try(connection.rollback())
        throw error
    } finally {
      Try(connection.close())
      ()
    }
  }

  /** Runs the statement of the first row for all following rows with an equal statement. */
  private def runStep(rows: BufferedIterator[Row], connection: Connection): Unit = {
    val (step, nulls) = (rows.head.getString(0), rows.head.getString(1))
    val values = table.values(ofSpark, connection, step, nulls)
    val same = new Iterator[Seq[AnyRef]] {
      override def hasNext: Boolean =
        rows.hasNext && rows.head.getString(0) == step && rows.head.getString(1) == nulls
      override def next(): Seq[AnyRef] = values(rows.next().getStruct(2))
    }
    ofSpark.write(
      connection,
      table.statement(step, nulls),
      same,
      table.nullTypes(ofSpark, step, nulls))
  }
}
