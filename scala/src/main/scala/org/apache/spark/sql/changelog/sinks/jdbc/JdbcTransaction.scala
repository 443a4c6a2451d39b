// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Proxy}
import java.sql.{Connection, Timestamp, Types}
import java.time.LocalDateTime

import scala.collection.BufferedIterator
import scala.util.Try

import org.apache.spark.TaskContext
import org.apache.spark.sql.Row
import org.apache.spark.sql.execution.datasources.jdbc.{
  JDBCOptions,
  JdbcOptionsInWrite,
  JdbcUtils
}
import org.apache.spark.sql.jdbc.{JdbcDialect, JdbcType}
import org.apache.spark.sql.types.{DataType, StringType}
import org.apache.spark.util.TaskInterruptListener

/** Writes one partition of a batch in one transaction, unless it was written before. */
private class JdbcTransaction(options: JdbcOptionsInWrite, table: TargetTable, ledger: Ledger) {
  import JdbcTransaction._

  private val dialect = table.database.dialect

  /** @param rows step, places of NULLs in the key, row; equal steps side by side */
  def write(rows: BufferedIterator[Row], place: Ledger.Place, batchId: Long): Unit = {
    val connection = dialect.createConnectionFactory(options)(place.partition)
    Option(TaskContext.get()).foreach { task =>
      task.addTaskInterruptListener(new TaskInterruptListener {
        // what waits for the database then fails
        override def onTaskInterrupted(context: TaskContext, reason: String): Unit = {
          Try(connection.close())
          ()
        }
      })
    }
    try {
      connection.setAutoCommit(false)
      connection.setTransactionIsolation(options.isolationLevel)
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

  /** Runs the statement of the first row for all rows it is meant for. */
  private def runStep(rows: BufferedIterator[Row], connection: Connection): Unit = {
    val (step, nulls) = (rows.head.getString(0), rows.head.getString(1))
    val values = table.values(step, nulls)
    val same = new Iterator[Row] {
      override def hasNext: Boolean =
        rows.hasNext && rows.head.getString(0) == step && rows.head.getString(1) == nulls
      override def next(): Row = values(rows.next().getStruct(2))
    }
    JdbcUtils.savePartition(
      options.table,
      same,
      table.parameters(step, nulls),
      table.statement(step, nulls),
      options.batchSize,
      new OpenDialect(dialect, connection),
      Connection.TRANSACTION_NONE,
      options)
  }
}

private object JdbcTransaction {

  /**
   * Lets Spark's writer, which knows how to hand every type to a driver, take part in a transaction
   * that is open, and that it must not end.
   */
  private class OpenDialect(dialect: JdbcDialect, connection: Connection) extends JdbcDialect {
    private val kept = Proxy
      .newProxyInstance(
        classOf[Connection].getClassLoader,
        Array[Class[_]](classOf[Connection]),
        new InvocationHandler {
          override def invoke(proxy: Any, method: Method, arguments: Array[AnyRef]): AnyRef =
            if (method.getName == "close") null
            else {
              try method.invoke(connection, Option(arguments).getOrElse(Array.empty): _*)
              catch { case error: InvocationTargetException => throw error.getCause }
            }
        })
      .asInstanceOf[Connection]

    override def canHandle(url: String): Boolean = dialect.canHandle(url)

    override def createConnectionFactory(options: JDBCOptions): Int => Connection = _ => kept

    /** A text that is NULL is one for every column, a key's short one among them. */
    override def getJDBCType(dataType: DataType): Option[JdbcType] = {
      val known = dialect.getJDBCType(dataType).orElse(JdbcUtils.getCommonJDBCType(dataType))
      dataType match {
        case _: StringType => known.map(_.copy(jdbcNullType = Types.VARCHAR))
        case _ => known
      }
    }

    override def convertTimestampNTZToJavaTimestamp(value: LocalDateTime): Timestamp =
      dialect.convertTimestampNTZToJavaTimestamp(value)
  }
}
