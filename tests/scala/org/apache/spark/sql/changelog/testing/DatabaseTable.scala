// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.sql.{Connection, DriverManager, SQLException}

import scala.util.Using

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{DataFrame, Row}

/**
 * The table of a database that a query's changes keep, by `changelog-jdbc`.
 *
 * @param sql
 *   the query
 * @param address
 *   `url`, `user` and `password` of the database
 */
class DatabaseTable(
    spark: SparkSession,
    sql: String,
    address: Map[String, String],
    name: String) {
  private val options = Seq("url", "user", "password").map(key => key -> address(key)).toMap
  private val checkpoint = QuickFileSystem.temporaryDirectory()
  private var query: Option[StreamingQuery] = None

  def start(): Unit = query = Some(
    spark
      .sql(s"SELECT * FROM to_changelog(TABLE($sql), mode => 'upsert')")
      .writeStream
      .format("changelog-jdbc")
      .options(options)
      .option("dbtable", name)
      .option("createTable", "true")
      .option("checkpointLocation", checkpoint.getPath)
      .start())

  def restart(): Unit = {
    stop()
    start()
  }

  def stop(): Unit = query.foreach(_.stop())

  /** The rows as text, none as long as there is no table. */
  def table: Seq[String] = {
    query.flatMap(_.exception).foreach(error => throw error)
    try DatabaseTable.select(options, s"SELECT * FROM $name")
    catch { case _: SQLException => Nil }
  }
}

object DatabaseTable {

  /** A table as Spark reads it, which has a dialect for MySQL's address only, not for MariaDB's. */
  def read(spark: SparkSession, address: Map[String, String], name: String): DataFrame = {
    val url = address("url")
    val spoken: Map[String, String] =
      if (!url.startsWith("jdbc:mariadb:")) Map.empty
      else
        Map(
          "driver" -> "org.mariadb.jdbc.Driver",
          "url" -> (url.replace("jdbc:mariadb:", "jdbc:mysql:") + "?permitMysqlScheme"))
    spark.read.format("jdbc").options(address ++ spoken).option("dbtable", name).load()
  }

  /** The rows of a query in a database, as text. */
  def select(address: Map[String, String], sql: String): Seq[String] =
    connected(address) { connection =>
      Using.resource(connection.createStatement().executeQuery(sql)) { rows =>
        val columns = rows.getMetaData.getColumnCount
        Iterator
          .continually(rows)
          .takeWhile(_.next())
          .map(row => TextChangelog.format(Row.fromSeq((1 to columns).map(row.getString))))
          .toSeq
          .sorted
      }
    }

  /** Runs statements, in one transaction. */
  def execute(address: Map[String, String], statements: String*): Unit =
    connected(address) { connection =>
      connection.setAutoCommit(false)
      Using.resource(connection.createStatement())(s => statements.foreach(s.executeUpdate))
      connection.commit()
    }

  def connected[T](address: Map[String, String])(body: Connection => T): T = Using.resource(
    DriverManager.getConnection(address("url"), address("user"), address("password")))(body)
}
