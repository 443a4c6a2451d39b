// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.sql.{Connection, SQLException}
import java.util.Locale

import scala.util.Using

import org.apache.spark.sql.execution.datasources.jdbc.{JdbcOptionsInWrite, JdbcUtils}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.jdbc.{JdbcDialect, JdbcDialects}
import org.apache.spark.sql.types._

/**
 * What a database does in its own way, where Spark's dialects don't say.
 *
 * Any database can be written to, by deleting and inserting; a subclass knows how to replace a row
 * in one statement.
 */
class DatabaseSyntax(val dialect: JdbcDialect) extends Serializable {

  /** What follows an INSERT to replace the row with that key, if the database has such a thing. */
  def onConflict(key: Seq[String], others: Seq[String]): Option[String] = None

  def quote(name: String): String = dialect.quoteIdentifier(name)

  /** Creates a table with the columns of the query, and its key. */
  def createTable(
      connection: Connection,
      options: JdbcOptionsInWrite,
      schema: StructType,
      key: Seq[String]): Unit = {
    val caseSensitive = SQLConf.get.caseSensitiveAnalysis
    val columns = options.createTableColumnTypes match {
      case None =>
        schema.map { field =>
          val ownType = columnType(connection, field.dataType, key.contains(field.name))
          val notNull = if (field.nullable) "" else " NOT NULL"
          ownType.map(name => s"${quote(field.name)} $name$notNull").getOrElse {
            JdbcUtils.schemaString(dialect, StructType(Seq(field)), caseSensitive)
          }
        }
      case types => Seq(JdbcUtils.schemaString(dialect, schema, caseSensitive, types))
    }
    // a primary key can't be NULL
    val constraint = if (key.exists(schema(_).nullable)) "UNIQUE" else "PRIMARY KEY"
    val keys = if (key.isEmpty) Nil else Seq(s"$constraint (${key.map(quote).mkString(", ")})")
    try
      Using.resource(connection.createStatement()) { statement =>
        dialect.createTable(statement, options.table, (columns ++ keys).mkString(", "), options)
      }
    catch {
      // another writer has been faster
      case _: SQLException if JdbcUtils.tableExists(connection, options) =>
    }
  }

  /** The type of a column of a new table, where it is not the one Spark's dialect has for it. */
  protected def columnType(
      connection: Connection,
      dataType: DataType,
      inKey: Boolean): Option[String] =
    if (inKey && dataType.isInstanceOf[StringType]) Some("VARCHAR(255)") else None
}

object DatabaseSyntax {
  def apply(url: String): DatabaseSyntax = {
    val address = url.toLowerCase(Locale.ROOT)
    if (address.startsWith("jdbc:postgresql:")) new PostgresSyntax(JdbcDialects.get(url))
    else if (address.startsWith("jdbc:mysql:")) new MySQLSyntax(JdbcDialects.get(url))
    // Spark has no dialect for it, but it talks like MySQL
    else if (address.startsWith("jdbc:mariadb:")) new MySQLSyntax(JdbcDialects.get("jdbc:mysql:"))
    else new DatabaseSyntax(JdbcDialects.get(url))
  }
}
