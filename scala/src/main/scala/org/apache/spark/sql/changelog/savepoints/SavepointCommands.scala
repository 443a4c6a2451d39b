// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.savepoints

import java.sql.Timestamp

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.SqlCommand

/**
 * The state of a query from which something goes on: after a batch, or that of a savepoint; after the last batch that is
 * done if neither is named.
 */
case class RestorePoint(batch: Option[Long] = None, savepoint: Option[String] = None)

/**
 * What has batches that can be kept: a checkpoint, or a view.
 *
 * @param keep
 *   keeps a batch under a name; the last one that is done, if none is named
 */
case class SavepointOwner(
    savepoints: SparkSession => Savepoints,
    keep: (SparkSession, String, Option[Long]) => Savepoint)

object SavepointOwner {

  /** The checkpoint of a query that runs, or has run. */
  def checkpoint(path: String): SavepointOwner = {
    def of(session: SparkSession) = Savepoints.ofCheckpoint(session, new Path(path))
    SavepointOwner(
      of,
      (session, name, batch) => {
        val forkable = ForkableCheckpoint(session, new Path(path))
        val checked = forkable.checked(batch)
        of(session).create(name, checked) { folder =>
          forkable.fork(checked, Savepoints.checkpointIn(folder), noted = true)
        }
      })
  }
}

/** Statements about savepoints. */
object SavepointCommands {
  private val columns =
    "savepoint STRING NOT NULL, batch BIGINT NOT NULL, created TIMESTAMP NOT NULL, " +
      "checkpoint STRING NOT NULL"

  private def row(kept: Savepoint): Row =
    Row(kept.name, kept.batch, new Timestamp(kept.created), kept.checkpoint.toString)

  /** `CREATE SAVEPOINT name OF … [AT BATCH n]`: keeps what is needed to go on from a batch. */
  def create(name: String, of: SavepointOwner, batch: Option[Long]): LogicalPlan =
    SqlCommand.returning(columns, "CREATE SAVEPOINT", name, of, batch)(session =>
      Seq(row(of.keep(session, name, batch))))

  /** `SHOW SAVEPOINTS OF …`: the oldest first. */
  def show(of: SavepointOwner): LogicalPlan =
    SqlCommand.returning(columns, "SHOW SAVEPOINTS", of)(session =>
      of.savepoints(session).all.map(row))

  /** `DROP SAVEPOINT [IF EXISTS] name OF …`. */
  def drop(name: String, of: SavepointOwner, ifExists: Boolean): LogicalPlan =
    SqlCommand.unit("DROP SAVEPOINT", name, of, ifExists)(session =>
      of.savepoints(session).drop(name, ifExists))

  /**
   * `FORK CHECKPOINT 'from' [AT BATCH n | AT SAVEPOINT s] INTO 'new'`: makes a checkpoint with which the same
   * query goes on a second time from a batch. It gives that batch.
   */
  def fork(from: String, at: RestorePoint, into: String): LogicalPlan =
    SqlCommand.returning("batch BIGINT NOT NULL", "FORK CHECKPOINT", from, at, into) { session =>
      val kept = at.savepoint.map(Savepoints.ofCheckpoint(session, new Path(from)).get)
      val forkable =
        ForkableCheckpoint(session, kept.fold(new Path(from))(_.checkpoint))
      val batch = forkable.checked(kept.map(_.batch).orElse(at.batch))
      forkable.fork(batch, new Path(into), noted = true)
      Seq(Row(batch))
    }
}
