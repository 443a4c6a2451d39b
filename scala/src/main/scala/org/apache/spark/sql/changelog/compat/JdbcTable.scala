// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.sql.{Connection, SQLException, Types}

import scala.util.{Try, Using}

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.datasources.jdbc.{JdbcOptionsInWrite, JdbcUtils}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.jdbc.{JdbcDialect, JdbcType}
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * A database table, accessed through Spark's JDBC options and dialects.
 *
 * @param parameters
 *   the options of Spark's own source `jdbc`; fails if the driver is missing
 */
final class JdbcTable(parameters: Map[String, String]) extends Serializable {
  private val options = new JdbcOptionsInWrite(parameters)

  def name: String = options.table

  def isolationLevel: Int = options.isolationLevel

  def url: String = options.url

  def user: Option[String] = options.parameters.get("user")

  def password: Option[String] = options.parameters.get("password").filter(_.nonEmpty)

  /** Opens a connection for a task. When the task is interrupted, calls waiting for the database fail. */
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

  /** Returns the table's columns, if the table exists. */
  def columns(connection: Connection): Option[StructType] =
    JdbcUtils.getSchemaOption(connection, options)

  /** The user's types for the columns of a created table. */
  def columnTypes: Option[String] = options.createTableColumnTypes

  /** Returns column definitions for a `CREATE TABLE`. */
  def definitions(
      dialect: JdbcDialect,
      columns: StructType,
      types: Option[String] = None): String =
    JdbcUtils.schemaString(dialect, columns, SQLConf.get.caseSensitiveAnalysis, types)

  /** Returns a column's type in the database, and the JDBC type of its NULL. */
  def typeOf(dialect: JdbcDialect, dataType: DataType): JdbcType =
    JdbcUtils.getJdbcType(dataType, dialect)

  def create(connection: Connection, dialect: JdbcDialect, columns: String): Unit =
    Using.resource(connection.createStatement()) { statement =>
      dialect.createTable(statement, options.table, columns, options)
    }

  /**
   * Runs a statement for each row, in the open transaction.
   *
   * Spark's own writer passes dates and times as `java.sql.Date` and `Timestamp`, which drivers interpret in
   * the JVM's time zone.
   *
   * @param rows
   *   values in the driver's types
   * @param nullTypes
   *   the JDBC type of NULL, for each value
   */
  def write(
      connection: Connection,
      statement: String,
      rows: Iterator[Seq[AnyRef]],
      nullTypes: Seq[Int]): Unit =
    Using.resource(connection.prepareStatement(statement)) { prepared =>
      val metrics = TaskContext.get().taskMetrics().outputMetrics
      prepared.setQueryTimeout(options.queryTimeout)
      rows.grouped(options.batchSize).foreach { batch =>
        batch.foreach { row =>
          row.zip(nullTypes).zipWithIndex.foreach {
            case ((null, nullType), index) => prepared.setNull(index + 1, nullType)
            // untyped: the database converts the text to the column's type
            case ((text: String, Types.OTHER), index) =>
              prepared.setObject(index + 1, text, Types.OTHER)
            case ((value, _), index) => prepared.setObject(index + 1, value)
          }
          prepared.addBatch()
        }
        try prepared.executeBatch()
        catch {
          // the error of the row follows the error of the batch
          case error: SQLException if error.getCause == null && error.getNextException != null =>
            Try(error.initCause(error.getNextException))
            throw error
        }
        metrics.setRecordsWritten(metrics.recordsWritten + batch.size)
      }
    }
}
