// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.sql.Connection
import java.time.{Instant, LocalDate, LocalDateTime, ZoneOffset}

import org.apache.spark.sql.jdbc.JdbcDialect
import org.apache.spark.sql.types._

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

  override def limitOf(value: Any): Option[String] = value match {
    case at: Instant => limitOf(LocalDateTime.ofInstant(at, ZoneOffset.UTC))
    case time: LocalDateTime => limitOf(time.toLocalDate)
    case day: LocalDate if day.getYear < 0 || day.getYear > 9999 => Some("years from 0 to 9999")
    case number: Double if number.isNaN || number.isInfinite => Some("finite numbers")
    case number: Float if number.isNaN || number.isInfinite => Some("finite numbers")
    case _ => None
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
