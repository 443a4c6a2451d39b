// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.nio.charset.StandardCharsets.UTF_8
import java.sql.{Connection, SQLException, Types}
import java.time.{Instant, LocalDate, LocalDateTime, ZoneOffset}
import java.util.Locale

import scala.util.control.NonFatal

import org.apache.spark.sql.jdbc.{JdbcDialect, JdbcDialects}
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.compat.JdbcTable
import org.apache.spark.sql.changelog.errors.ChangelogErrors.{analysis, runtime}
import org.apache.spark.sql.changelog.errors.{ChangelogRuntimeException, Credentials}

/**
 * DatabaseSyntax: the SQL of a database where Spark's dialects have none.
 *
 * Every database is supported by deletes and inserts. A subclass replaces a row in one statement.
 */
class DatabaseSyntax(val dialect: JdbcDialect) extends Serializable {

  /** Returns the clause that makes an INSERT replace the row of the key, if supported. */
  def onConflict(key: Seq[String], others: Seq[String]): Option[String] = None

  /**
   * Returns a connection for one task, or for the driver.
   *
   * Spark's error for a failed connection has neither address nor reason.
   */
  def connect(table: JdbcTable, partition: Int = -1): Connection =
    try table.connect(dialect, partition)
    catch {
      case NonFatal(error) =>
        throw connectionFailed(table, error)
    }

  /** Keeps the error of the driver or Spark as the cause only if the error contains no secret. */
  private def connectionFailed(table: JdbcTable, error: Throwable): ChangelogRuntimeException = {
    val chain = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(20).toSeq
    val told = chain.flatMap(e => Option(e.getMessage)).distinct
    val address = Credentials.removed(table.url)
    def hidden(text: String) = Credentials.removed(
      table.password.foldLeft(text.replace(table.url, address))(_.replace(_, "***")))
    val reason = if (told.isEmpty) error.getClass.getName else hidden(told.mkString(" "))
    runtime(
      "CHANGELOG_SINK_CONNECTION_FAILED",
      if (told.forall(text => hidden(text) == text)) error else null,
      "sink" -> "changelog-jdbc",
      "address" -> address.split("[?;]").head,
      "user" -> table.user.fold("the user that its url names")(name => s"the user $name"),
      "reason" -> reason.stripSuffix("."))
  }

  /**
   * The statement at the start of a transaction: sets the time zone to UTC, and forbids truncation of values.
   */
  def sessionStatement: Option[String] = None

  /** The JDBC type of a NULL text, including short texts of a key. */
  def textType: Int = Types.VARCHAR

  /** The years of dates and times that the database supports, if known. Year 0 is 1 BC. */
  protected def years: Option[(Int, Int)] = None

  /** Returns the supported range, if the database does not support a value. */
  def limitOf(value: Any): Option[String] = value match {
    case at: Instant => limitOf(LocalDateTime.ofInstant(at, ZoneOffset.UTC))
    case time: LocalDateTime => limitOf(time.toLocalDate)
    case day: LocalDate =>
      years.collect {
        case (first, last) if day.getYear < first || day.getYear > last =>
          s"years from $first to $last"
      }
    case _ => None
  }

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
    // A primary key must not be NULL.
    val constraint = if (key.exists(schema(_).nullable)) "UNIQUE" else "PRIMARY KEY"
    val keys = if (key.isEmpty) Nil else Seq(s"$constraint (${key.map(quote).mkString(", ")})")
    try table.create(connection, dialect, (columns ++ keys).mkString(", "))
    catch {
      // Another writer has created the table first.
      case _: SQLException if table.exists(connection) =>
    }
  }

  /** Returns the type of a column in a new table, if different from Spark's dialect. */
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

  private val knownYears =
    Map("db2" -> (1, 9999), "oracle" -> (-4711, 9999), "sqlserver" -> (1, 9999))

  /** Returns the kind of database in an address, as in `jdbc:kind:...`. */
  def kindOf(url: String): String = url.split(':').lift(1).getOrElse("").toLowerCase(Locale.ROOT)

  /** Returns the class of the usual driver for an address. */
  def driverOf(url: String): Option[String] = drivers.get(kindOf(url))

  def apply(url: String): DatabaseSyntax = kindOf(url) match {
    case "postgresql" => new PostgresSyntax(JdbcDialects.get(url))
    case "mysql" => new MySQLSyntax(JdbcDialects.get(url))
    // Spark has no MariaDB dialect, and MariaDB's SQL resembles MySQL's.
    case "mariadb" => new MySQLSyntax(JdbcDialects.get("jdbc:mysql:"))
    case kind =>
      new DatabaseSyntax(JdbcDialects.get(url)) {
        override protected def years: Option[(Int, Int)] = knownYears.get(kind)
      }
  }
}

/** The SQL of PostgreSQL and compatible databases. */
class PostgresSyntax(dialect: JdbcDialect) extends DatabaseSyntax(dialect) {
  import PostgresSyntax._

  override def onConflict(key: Seq[String], others: Seq[String]): Option[String] = {
    val action =
      if (others.isEmpty) "NOTHING"
      else
        others.map(c => s"${quote(c)} = EXCLUDED.${quote(c)}").mkString("UPDATE SET ", ", ", "")
    Some(s"ON CONFLICT (${key.map(quote).mkString(", ")}) DO $action")
  }

  override def sessionStatement: Option[String] = Some("SET TIME ZONE 'UTC'")

  /** Allows texts in columns of JSON, UUID or an enumeration. */
  override def textType: Int = Types.OTHER

  override def limitOf(value: Any): Option[String] = value match {
    case at: Instant => limitOf(LocalDateTime.ofInstant(at, ZoneOffset.UTC))
    case time: LocalDateTime if time.isBefore(FirstDay.atStartOfDay) =>
      Some(s"times from $FirstDay on")
    case day: LocalDate if day.isBefore(FirstDay) => Some(s"days from $FirstDay on")
    case text: String if text.indexOf(0) >= 0 => Some("texts without the character U+0000")
    case elements: collection.Seq[_] => elements.flatMap(limitOf).headOption
    case _ => None
  }

  /** Rejects long names, because PostgreSQL silently truncates them. */
  override def createTable(
      connection: Connection,
      table: JdbcTable,
      schema: StructType,
      key: Seq[String]): Unit = {
    schema.fieldNames.find(_.getBytes(UTF_8).length > LongestName).foreach { column =>
      throw analysis(
        "CHANGELOG_SINK_NAME_TOO_LONG",
        "sink" -> "changelog-jdbc",
        "table" -> table.name,
        "column" -> column,
        "longest" -> LongestName)
    }
    super.createTable(connection, table, schema, key)
  }

  /** Texts of any length can be a key. */
  override protected def columnType(
      connection: Connection,
      dataType: DataType,
      inKey: Boolean): Option[String] = None
}

private object PostgresSyntax {

  /** In bytes. */
  private val LongestName = 63

  /** 4714-11-24 BC. */
  private val FirstDay = LocalDate.of(-4713, 11, 24)
}

/**
 * The SQL of MySQL and MariaDB.
 *
 * In a new table, columns hold long texts and full fractions of a second. The database's defaults
 * do not. Texts in a key are compared by bytes, as in Spark.
 */
class MySQLSyntax(dialect: JdbcDialect) extends DatabaseSyntax(dialect) {

  // MariaDB does not support a row alias, so the clause uses VALUES().
  override def onConflict(key: Seq[String], others: Seq[String]): Option[String] = {
    val assigned = if (others.isEmpty) key.take(1) else others
    val actions = assigned.map(c => s"${quote(c)} = VALUES(${quote(c)})")
    Some(s"ON DUPLICATE KEY UPDATE ${actions.mkString(", ")}")
  }

  /** A server without strict mode would truncate values, even in keys. */
  override def sessionStatement: Option[String] = Some(
    "SET time_zone = '+00:00', sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')")

  override protected def years: Option[(Int, Int)] = Some((0, 9999))

  override def limitOf(value: Any): Option[String] = value match {
    case number: Double if number.isNaN || number.isInfinite => Some("finite numbers")
    case number: Float if number.isNaN || number.isInfinite => Some("finite numbers")
    case other => super.limitOf(other)
  }

  override protected def columnType(
      connection: Connection,
      dataType: DataType,
      inKey: Boolean): Option[String] = dataType match {
    case _: StringType if inKey =>
      val collation =
        if (isMariaDB(connection)) "utf8mb4_nopad_bin" else "utf8mb4_0900_bin"
      Some(s"VARCHAR(255) CHARACTER SET utf8mb4 COLLATE $collation")
    case _: StringType => Some("LONGTEXT CHARACTER SET utf8mb4")
    case BinaryType => Some(if (inKey) "VARBINARY(255)" else "LONGBLOB")
    // TIMESTAMP ends in 2038.
    case TimestampType | TimestampNTZType => Some("DATETIME(6)")
    case _ => None
  }

  private def isMariaDB(connection: Connection): Boolean = {
    val metadata = connection.getMetaData
    Seq(metadata.getDatabaseProductName, metadata.getDatabaseProductVersion)
      .exists(_.toLowerCase.contains("mariadb"))
  }
}
