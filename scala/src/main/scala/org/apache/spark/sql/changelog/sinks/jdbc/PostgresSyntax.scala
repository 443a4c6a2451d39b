// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.sql.Connection

import org.apache.spark.sql.jdbc.JdbcDialect
import org.apache.spark.sql.types.DataType

/** PostgreSQL, and what understands its SQL. */
class PostgresSyntax(dialect: JdbcDialect) extends DatabaseSyntax(dialect) {

  override def onConflict(key: Seq[String], others: Seq[String]): Option[String] = {
    val action =
      if (others.isEmpty) "NOTHING"
      else
        others.map(c => s"${quote(c)} = EXCLUDED.${quote(c)}").mkString("UPDATE SET ", ", ", "")
    Some(s"ON CONFLICT (${key.map(quote).mkString(", ")}) DO $action")
  }

  /** Text of any length can be a key. */
  override protected def columnType(
      connection: Connection,
      dataType: DataType,
      inKey: Boolean): Option[String] = None
}
