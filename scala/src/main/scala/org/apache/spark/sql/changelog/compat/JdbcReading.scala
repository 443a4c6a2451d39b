// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.sql.{
  Connection, DatabaseMetaData, PreparedStatement, SQLException, SQLFeatureNotSupportedException,
  Types
}
import java.util.regex.Pattern

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import org.apache.spark.executor.InputMetrics
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.jdbc.{
  JDBCOptions, JDBCPartition, JDBCRelation, JdbcOptionsInWrite, JdbcUtils
}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTable
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.jdbc.{JdbcDialect, JdbcDialects, JdbcType}
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.{Partition, TaskContext}

/** The table or query read by Spark's JDBC source. */
final class JdbcReading private (options: JDBCOptions) extends Serializable {
  import JdbcReading._

  @transient private lazy val dialect = JdbcDialects.get(options.url)
  @transient private lazy val connections = dialect.createConnectionFactory(options)

  /** The options of the source, including passwords. */
  def parameters: Map[String, String] = options.parameters.toMap

  /**
   * The columns of the primary key, in the database's spelling. Empty for a query, for a table without primary
   * key, and if the database does not report primary keys.
   */
  def primaryKey: Seq[String] = JdbcUtils.withConnection(options) { connection =>
    val metadata = connection.getMetaData
    partsOf(options.tableOrQuery, metadata).fold(Seq.empty[String]) { parts =>
      try keyOf(parts, connection, metadata)
      catch { case _: SQLFeatureNotSupportedException => Nil }
    }
  }

  def url: String = options.url

  /** The name of the table, or the text of the query. */
  def tableOrQuery: String = options.tableOrQuery

  /** Opens a connection for [[read]]. */
  def connect(): Connection = {
    val connection = connections(-1)
    options.sessionInitStatement.foreach { text =>
      Using.resource(connection.createStatement())(_.execute(text))
    }
    connection
  }

  def quoted(column: String): String = dialect.quoteIdentifier(column)

  /**
   * Reads the rows with a condition, and returns their number.
   *
   * @param condition
   *   the condition as SQL, with a `?` for each parameter
   * @param setParameters
   *   sets the parameters of the statement
   * @param use
   *   uses a row, which is valid until the next row
   */
  def read(
      connection: Connection,
      columns: StructType,
      condition: String,
      setParameters: PreparedStatement => Unit)(use: InternalRow => Unit): Long = {
    val text = dialect
      .getJdbcSQLQueryBuilder(options)
      .withPredicates(Array.empty, JDBCPartition(condition, 0))
      .withColumns(columns.map(column => quoted(column.name)).toArray)
      .build()
    val metrics = new InputMetrics
    Using.resource(connection.prepareStatement(text)) { statement =>
      statement.setFetchSize(options.fetchSize)
      statement.setQueryTimeout(options.queryTimeout)
      setParameters(statement)
      Using.resource(statement.executeQuery()) { result =>
        JdbcUtils.resultSetToSparkInternalRows(result, dialect, columns, metrics).foreach(use)
      }
    }
    if (!connection.getAutoCommit) connection.commit()
    metrics.recordsRead
  }

  private def keyOf(
      parts: Seq[String],
      connection: Connection,
      metadata: DatabaseMetaData): Seq[String] = {
    val (catalog, schema) = parts.init match {
      case Seq(catalog, schema) => (catalog, schema)
      case Seq(schema) if metadata.supportsSchemasInTableDefinitions =>
        (connection.getCatalog, schema)
      // in MySQL and MariaDB, a database is a catalog
      case Seq(catalog) => (catalog, null)
      case _ => (connection.getCatalog, connection.getSchema)
    }
    Using.resource(metadata.getPrimaryKeys(catalog, schema, parts.last)) { rows =>
      Iterator
        .continually(rows)
        .takeWhile(_.next())
        .map(row => row.getShort("KEY_SEQ") -> row.getString("COLUMN_NAME"))
        .toSeq
        .sortBy(_._1)
        .map(_._2)
    }
  }
}

object JdbcReading {

  /** Returns the JDBC table or query of a relation, if any. */
  def of(relation: LogicalPlan): Option[JdbcReading] = relation match {
    case logical: LogicalRelation =>
      logical.relation match {
        case jdbc: JDBCRelation => Some(new JdbcReading(jdbc.jdbcOptions))
        case _ => None
      }
    case DataSourceV2Relation(table: JDBCTable, _, _, _, _, _) =>
      Some(new JdbcReading(table.jdbcOptions))
    case _ => None
  }

  /** Returns a relation of the JDBC source, or a table of a JDBC catalog as such a relation with the same columns. */
  def asSource(relation: LogicalPlan): Option[LogicalRelation] = relation match {
    case logical: LogicalRelation => of(logical).map(_ => logical)
    case DataSourceV2Relation(table: JDBCTable, output, _, _, options, _) =>
      val all = table.jdbcOptions.parameters.originalMap ++ options.asCaseSensitiveMap().asScala
      val whole = Array[Partition](JDBCPartition(null, 0))
      val source =
        JDBCRelation(table.schema, whole, new JDBCOptions(all))(SparkSession.active)
      Some(LogicalRelation(source).copy(output = output))
    case _ => None
  }

  /** Returns the parts of a table's name in the database's spelling; empty if the text is not a name. */
  private def partsOf(table: String, metadata: DatabaseMetaData): Option[Seq[String]] = {
    val quote = Option(metadata.getIdentifierQuoteString).map(_.trim).filter(_.nonEmpty)
    val plain = "[\\p{L}_][\\p{L}\\p{N}_$#]*"
    val quoted = quote.map(Pattern.quote).map(q => s"$q(?:(?!$q).|$q$q)+$q")
    val part = (quoted.toSeq :+ plain).mkString("(?:", "|", ")")
    Option.when(table.trim.matches(s"$part(?:\\.$part){0,2}")) {
      part.r
        .findAllIn(table.trim)
        .map { name =>
          quote.filter(name.startsWith).fold(folded(name, metadata)) { q =>
            name.drop(q.length).dropRight(q.length).replace(q + q, q)
          }
        }
        .toSeq
    }
  }

  private def folded(name: String, metadata: DatabaseMetaData): String =
    if (metadata.storesLowerCaseIdentifiers) name.toLowerCase
    else if (metadata.storesUpperCaseIdentifiers) name.toUpperCase
    else name
}

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
