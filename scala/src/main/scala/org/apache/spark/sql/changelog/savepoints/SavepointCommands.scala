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
 * RestorePoint: the batch from which a query continues, given by number or by savepoint. The default is the last batch
 * done.
 */
case class RestorePoint(batch: Option[Long] = None, savepoint: Option[String] = None)

/**
 * SavepointOwner: a checkpoint or a view, whose batches can be stored as savepoints.
 *
 * @param name
 *   the path of the checkpoint, or the name of the view
 * @param keep
 *   stores a batch under a name; the last batch done, if None
 */
case class SavepointOwner(name: Seq[String])(
    val savepoints: SparkSession => Savepoints,
    val keep: (SparkSession, String, Option[Long]) => Savepoint)

object SavepointOwner {

  /** Returns the checkpoint of a query, running or stopped, as an owner of savepoints. */
  def checkpoint(path: String): SavepointOwner = {
    def of(session: SparkSession) = Savepoints.ofCheckpoint(session, new Path(path))
    SavepointOwner(Seq(path))(
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

/** SavepointCommands: the statements about savepoints. */
object SavepointCommands {
  private val columns =
    "savepoint STRING NOT NULL, batch BIGINT NOT NULL, created TIMESTAMP NOT NULL, " +
      "checkpoint STRING NOT NULL"

  private def row(kept: Savepoint): Row =
    Row(kept.name, kept.batch, new Timestamp(kept.created), kept.checkpoint.toString)

  /** `CREATE SAVEPOINT name OF … [AT BATCH n]`: stores the files needed to continue from a batch. */
  def create(name: String, of: SavepointOwner, batch: Option[Long]): LogicalPlan =
    SqlCommand.returning(columns, "CREATE SAVEPOINT", name, of, batch)(session =>
      Seq(row(of.keep(session, name, batch))))

  /** `SHOW SAVEPOINTS OF …`: returns the savepoints, oldest first. */
  def show(of: SavepointOwner): LogicalPlan =
    SqlCommand.returning(columns, "SHOW SAVEPOINTS", of)(session =>
      of.savepoints(session).all.map(row))

  /** `DROP SAVEPOINT [IF EXISTS] name OF …`: deletes a savepoint. */
  def drop(name: String, of: SavepointOwner, ifExists: Boolean): LogicalPlan =
    SqlCommand.unit("DROP SAVEPOINT", name, of, ifExists)(session =>
      of.savepoints(session).drop(name, ifExists))

  /**
   * `FORK CHECKPOINT 'from' [AT BATCH n | AT SAVEPOINT s] INTO 'new'`: creates a checkpoint for a second run of the
   * query from a batch. Returns the batch.
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
