// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.sql.{Connection, SQLException}

import scala.util.Using

import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime

/**
 * Ledger: a table beside the target, with the last batch written by each partition of a query.
 *
 * {{{
 *   query_id  target  part | parts  batch_id
 * }}}
 *
 * The transaction of the batch also writes the ledger. A repeated batch is therefore recognized,
 * whether after a failure or from a zombie run. The ledger's row stays locked until the commit.
 * If two runs write the same batch, the second run waits and then finds the batch written.
 *
 * @param name
 *   the ledger's own name
 * @param target
 *   the target table, because one query can have several targets
 */
class Ledger(name: String, target: String, database: DatabaseSyntax) extends Serializable {
  import Ledger._

  def create(connection: Connection): Unit =
    if (!exists(connection)) {
      val columns = "query_id VARCHAR(36) NOT NULL, target VARCHAR(255) NOT NULL, " +
        "part INTEGER NOT NULL, parts INTEGER NOT NULL, batch_id BIGINT NOT NULL, " +
        "PRIMARY KEY (query_id, target, part)"
      try
        Using.resource(connection.createStatement()) { statement =>
          statement.executeUpdate(s"CREATE TABLE $name ($columns)")
        }
      catch {
        // Another writer has created the table first.
        case _: SQLException if exists(connection) =>
      }
    }

  /** Returns the last batch written at least in part, if the ledger knows the query. */
  def lastBatchOf(connection: Connection, queryId: String): Option[Long] =
    if (!exists(connection)) None
    else {
      number(
        connection,
        s"SELECT max(batch_id) FROM $name WHERE query_id = ? AND target = ? HAVING count(*) > 0",
        Seq[Any](queryId, target))
    }

  /** Returns the number of partitions of a batch, if a partition has written the batch. */
  def partitionsOf(connection: Connection, queryId: String, batchId: Long): Option[Int] =
    number(
      connection,
      s"SELECT parts FROM $name WHERE query_id = ? AND target = ? AND batch_id = ?",
      Seq[Any](queryId, target, batchId)).map(_.toInt)

  /**
   * Records that a partition writes a batch. Returns false if the partition has already written
   * the batch. Fails if the partition has written a later batch.
   */
  def claim(connection: Connection, place: Place, batchId: Long): Boolean = {
    val key = Seq[Any](place.queryId, target, place.partition)
    val updated = update(
      connection,
      s"UPDATE $name SET batch_id = ?, parts = ? " +
        "WHERE query_id = ? AND target = ? AND part = ? AND batch_id < ?",
      Seq[Any](batchId, place.partitions) ++ key :+ batchId)
    updated == 1 || insert(connection, key, place, batchId)
  }

  private def insert(
      connection: Connection,
      key: Seq[Any],
      place: Place,
      batchId: Long): Boolean =
    try {
      update(
        connection,
        s"INSERT INTO $name (query_id, target, part, parts, batch_id) VALUES (?, ?, ?, ?, ?)",
        key ++ Seq(place.partitions, batchId))
      true
    } catch {
      case conflict: SQLException =>
        connection.rollback()
        val condition = "query_id = ? AND target = ? AND part = ?"
        number(connection, s"SELECT batch_id FROM $name WHERE $condition", key) match {
          case Some(`batchId`) => false
          case Some(later) if later > batchId =>
            throw runtime(
              "CHANGELOG_SINK_BATCH_SUPERSEDED",
              "sink" -> SinkName,
              "table" -> target,
              "query" -> place.queryId,
              "batch" -> batchId,
              "stored" -> later)
          case _ => throw conflict
        }
    }

  private def exists(connection: Connection): Boolean =
    try
      Using.resource(connection.prepareStatement(database.dialect.getTableExistsQuery(name))) {
        statement => statement.execute()
      }
    catch { case _: SQLException => false }

  private def update(connection: Connection, sql: String, values: Seq[Any]): Int =
    Using.resource(connection.prepareStatement(sql)) { statement =>
      values.zipWithIndex.foreach { case (value, index) => statement.setObject(index + 1, value) }
      statement.executeUpdate()
    }

  private def number(connection: Connection, sql: String, values: Seq[Any]): Option[Long] =
    Using.resource(connection.prepareStatement(sql)) { statement =>
      values.zipWithIndex.foreach { case (value, index) => statement.setObject(index + 1, value) }
      Using.resource(statement.executeQuery()) { rows =>
        if (rows.next()) Some(rows.getLong(1)) else None
      }
    }
}

object Ledger {
  val DefaultName = "spark_changelog_ledger"

  private val SinkName = "changelog-jdbc"

  /** The partition that writes a part of a batch. */
  case class Place(queryId: String, partition: Int, partitions: Int)
}
