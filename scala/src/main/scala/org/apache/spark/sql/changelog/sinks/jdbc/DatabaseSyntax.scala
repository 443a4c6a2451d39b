// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.sql.{Connection, SQLException, Types}
import java.util.Locale

import scala.util.control.NonFatal

import org.apache.spark.sql.jdbc.{JdbcDialect, JdbcDialects}
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.compat.JdbcTable
import org.apache.spark.sql.changelog.errors.SinkErrors

/**
 * What a database does in its own way, where Spark's dialects don't say.
 *
 * Any database can be written to, by deleting and inserting; a subclass knows how to replace a row
 * in one statement.
 */
class DatabaseSyntax(val dialect: JdbcDialect) extends Serializable {

  /** What follows an INSERT to replace the row with that key, if the database has such a thing. */
  def onConflict(key: Seq[String], others: Seq[String]): Option[String] = None

  /**
   * A connection for one task, or for the driver.
   *
   * Spark's error for one that fails names neither the address nor the reason.
   */
  def connect(table: JdbcTable, partition: Int = -1): Connection =
    try table.connect(dialect, partition)
    catch {
      case NonFatal(error) =>
        throw SinkErrors.connectionFailed(table.url, table.user, table.password, error)
    }

  /** What the session of a transaction begins with: its time zone becomes UTC, and no value is cut off. */
  def sessionStatement: Option[String] = None

  /** The JDBC type of a text that is NULL, the short one of a key among them. */
  def textType: Int = Types.VARCHAR

  /** What the database holds in place of a value that it can't hold; none if it holds the value. */
  def limitOf(value: Any): Option[String] = None

  def quote(name: String): String = dialect.quoteIdentifier(name)

  /** Creates a table with the columns of the query, and its key. */
  def createTable(
      connection: Connection,
      table: JdbcTable,
      schema: StructType,
      key: Seq[String]): Unit = {
    val columns = table.columnTypes match {
      case None =>
        schema.map { field =>
          val ownType = columnType(connection, field.dataType, key.contains(field.name))
          val notNull = if (field.nullable) "" else " NOT NULL"
          ownType.map(name => s"${quote(field.name)} $name$notNull").getOrElse {
            table.definitions(dialect, StructType(Seq(field)))
          }
        }
      case types => Seq(table.definitions(dialect, schema, types))
    }
    // a primary key can't be NULL
    val constraint = if (key.exists(schema(_).nullable)) "UNIQUE" else "PRIMARY KEY"
    val keys = if (key.isEmpty) Nil else Seq(s"$constraint (${key.map(quote).mkString(", ")})")
    try table.create(connection, dialect, (columns ++ keys).mkString(", "))
    catch {
      // another writer has been faster
      case _: SQLException if table.exists(connection) =>
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
  private val drivers = Map(
    "db2" -> "com.ibm.db2.jcc.DB2Driver",
    "h2" -> "org.h2.Driver",
    "mariadb" -> "org.mariadb.jdbc.Driver",
    "mysql" -> "com.mysql.cj.jdbc.Driver",
    "oracle" -> "oracle.jdbc.OracleDriver",
    "postgresql" -> "org.postgresql.Driver",
    "sqlserver" -> "com.microsoft.sqlserver.jdbc.SQLServerDriver")

  /** The kind of database that an address is of, as in `jdbc:kind:...`. */
  def kindOf(url: String): String = url.split(':').lift(1).getOrElse("").toLowerCase(Locale.ROOT)

  /** The class of the usual driver for an address. */
  def driverOf(url: String): Option[String] = drivers.get(kindOf(url))

  def apply(url: String): DatabaseSyntax = kindOf(url) match {
    case "postgresql" => new PostgresSyntax(JdbcDialects.get(url))
    case "mysql" => new MySQLSyntax(JdbcDialects.get(url))
    // Spark has no dialect for it, but it talks like MySQL
    case "mariadb" => new MySQLSyntax(JdbcDialects.get("jdbc:mysql:"))
    case _ => new DatabaseSyntax(JdbcDialects.get(url))
  }
}
