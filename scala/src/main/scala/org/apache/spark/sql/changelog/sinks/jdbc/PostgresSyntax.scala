// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.nio.charset.StandardCharsets.UTF_8
import java.sql.{Connection, Types}
import java.time.{Instant, LocalDate, LocalDateTime, ZoneOffset}

import org.apache.spark.sql.jdbc.JdbcDialect
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.compat.JdbcTable
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

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
