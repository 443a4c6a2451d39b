// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.sql.{Connection, DatabaseMetaData, PreparedStatement, SQLFeatureNotSupportedException}
import java.util.regex.Pattern

import scala.util.Using

import org.apache.spark.executor.InputMetrics
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.jdbc.{
  JDBCOptions, JDBCPartition, JDBCRelation, JdbcUtils
}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTable
import org.apache.spark.sql.jdbc.JdbcDialects
import org.apache.spark.sql.types.StructType

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
