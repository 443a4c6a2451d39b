// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Proxy}
import java.sql.{Connection, Timestamp, Types}
import java.time.LocalDateTime

import scala.util.{Try, Using}

import org.apache.spark.TaskContext
import org.apache.spark.sql.Row
import org.apache.spark.sql.execution.datasources.jdbc.{
  JDBCOptions,
  JdbcOptionsInWrite,
  JdbcUtils
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.jdbc.{JdbcDialect, JdbcType}
import org.apache.spark.sql.types.{DataType, StringType, StructType}

/**
 * A table of a database, which Spark's own writer and dialects talk to.
 *
 * @param parameters
 *   those of Spark's own source `jdbc`; fails if the driver is not there
 */
final class JdbcTable(parameters: Map[String, String]) extends Serializable {
  import JdbcTable._

  private val options = new JdbcOptionsInWrite(parameters)

  def name: String = options.table

  def isolationLevel: Int = options.isolationLevel

  def withConnection[T](body: Connection => T): T = JdbcUtils.withConnection(options)(body)

  /** A connection for one task; what waits for the database fails when the task is interrupted. */
  def connect(dialect: JdbcDialect, partition: Int): Connection = {
    val connection = dialect.createConnectionFactory(options)(partition)
    Option(TaskContext.get()).foreach(task =>
      TaskInterrupts.listen(task) {
        Try(connection.close())
        ()
      })
    connection
  }

  def exists(connection: Connection): Boolean = JdbcUtils.tableExists(connection, options)

  /** The columns that it has, if it is there. */
  def columns(connection: Connection): Option[StructType] =
    JdbcUtils.getSchemaOption(connection, options)

  /** The types that the user has given columns of a table that is created. */
  def columnTypes: Option[String] = options.createTableColumnTypes

  /** Columns as they stand in a `CREATE TABLE`. */
  def definitions(
      dialect: JdbcDialect,
      columns: StructType,
      types: Option[String] = None): String =
    JdbcUtils.schemaString(dialect, columns, SQLConf.get.caseSensitiveAnalysis, types)

  def create(connection: Connection, dialect: JdbcDialect, columns: String): Unit =
    Using.resource(connection.createStatement()) { statement =>
      dialect.createTable(statement, options.table, columns, options)
    }

  /** Runs a statement for each row, in the transaction that is open. */
  def write(
      connection: Connection,
      dialect: JdbcDialect,
      statement: String,
      rows: Iterator[Row],
      columns: StructType): Unit =
    JdbcUtils.savePartition(
      options.table,
      rows,
      columns,
      statement,
      options.batchSize,
      new OpenDialect(dialect, connection),
      Connection.TRANSACTION_NONE,
      options)
}

private object JdbcTable {

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
