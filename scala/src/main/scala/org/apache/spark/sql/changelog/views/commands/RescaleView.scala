// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.evolution.{OperatorSpread, Rescaling}
import org.apache.spark.sql.changelog.views._

/**
 * `ALTER MATERIALIZED VIEW v SET PARTITIONS n`: the query that keeps the view has its state in so many partitions from
 * now on. The rows that are shown stay as they are.
 *
 * The new checkpoint is made beside the one there is, and then named by the view's definition, in one step.
 */
case class RescaleView(name: Seq[String], numPartitions: Int) extends ViewCommand {
  override val output: Seq[Attribute] = OperatorSpread.columns

  override protected def runIn(session: SparkSession): Seq[Row] = ViewLeases(session, name) {
    view =>
      RunningViews.active(view).foreach(_ => throw ViewErrors.isRunning(view.name))
      ViewRefresh.computeState(session, view)
      val checkpoint = view.definition.checkpoint
      Rescaling.check(checkpoint, numPartitions)
      val files = checkpoint.getFileSystem(session.sessionState.newHadoopConf())
      val rescaled = view.definition.inPartitions(numPartitions)
      val spread =
        if (!files.exists(checkpoint)) Nil
        else if (hasBatches(session, checkpoint))
          new Rescaling(session, checkpoint, numPartitions).write(rescaled.checkpoint)
        else {
          // nothing has arrived yet, and what will is followed with so many
          files.mkdirs(rescaled.checkpoint)
          Nil
        }
      ViewStorage(session, view.definition.provider).alter(view, rescaled)
      files.delete(checkpoint, true)
      spread.map(_.toRow)
  }

  private def hasBatches(session: SparkSession, checkpoint: Path): Boolean = {
    val batches = new BatchLogs(session, checkpoint)
    batches.lastBegun.orElse(batches.lastDone).nonEmpty
  }
}
