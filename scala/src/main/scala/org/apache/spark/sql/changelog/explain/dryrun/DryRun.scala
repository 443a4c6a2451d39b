// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.dryrun

import java.util.UUID

import scala.collection.mutable

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.streaming.Trigger
import org.apache.spark.sql.{DataFrame => AnyDataFrame, Row, SparkSession => AnySession}
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.compat.ForwardedListeners
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.explain.{ChangesOfQuery, ExplainCommand, ExplainFormat}
import org.apache.spark.sql.changelog.plans.{ExplainNode, ToChangelog, WatchedChanges}

/**
 * Runs a query over a sample, and records the rows emitted by each node in each batch. The
 * operators equal the operators of a real run. The session, the checkpoint and the sink are
 * temporary.
 */
private[dryrun] object DryRun {

  /**
   * Returns the tree of each `to_changelog`, with the rows emitted by each node.
   *
   * @param changes
   *   the changes of the query, over the sample
   */
  def apply(session: SparkSession, changes: LogicalPlan): Seq[ExplainNode] = {
    val own = session.cloneSession()
    // A sample has only a few rows.
    own.sessionState.conf.setConf(ChangelogConf.STATE_PARTITIONS, Some(1))
    val watched = changes.collect { case root: ToChangelog => root.watched }.flatten
    val timeZone = own.sessionState.conf.sessionLocalTimeZone
    val batches = mutable.ArrayBuffer.empty[Map[WatchedChanges, Map[Int, Seq[String]]]]
    run(session, own, changes) {
      batches += watched.map(query => query -> textOf(query, timeZone)).toMap
    }
    watched.flatMap { query =>
      val sent = batches.map(_(query)).toSeq
      val places = sent.flatMap(_.keys).distinct
      val byPlace = places.map(place => place -> sent.map(_.getOrElse(place, Nil))).toMap
      query.explained.map(tree => withoutStreams(tree.emitting(byPlace)))
    }
  }

  /** Runs all batches of the sample, and calls `done` after each batch. */
  private def run(creator: SparkSession, session: SparkSession, changes: LogicalPlan)(
      done: => Unit): Unit =
    ThrowawayFolder.use(session) { checkpoint =>
      def query = Dataset
        .ofRows(session, changes)
        .writeStream
        .foreachBatch { (batch: AnyDataFrame, _: Long) =>
          batch.collect()
          done
        }
        .queryName("dry run")
        .option("checkpointLocation", checkpoint.toString)
        .trigger(Trigger.AvailableNow())
        .start()
      new ForwardedListeners(creator, session).run(query)
    }

  private def textOf(query: WatchedChanges, timeZone: String): Map[Int, Seq[String]] =
    query
      .take()
      .map { case (place, columns, rows) =>
        val text = new RowText(columns, timeZone)
        val changes = rows.map(if (place == 0) text.ofResult(_) else text(_))
        place -> changes
      }
      .toMap

  /** Sources are not part of the query. */
  private def withoutStreams(node: ExplainNode): ExplainNode = {
    val isSource = node.node == "ChangelogSource" || node.node == "ChangelogNormalize"
    node.copy(children = if (isSource) Nil else node.children.map(withoutStreams))
  }
}

/**
 * Shows the changes emitted by each node for sample rows: `EXPLAIN CHANGELOG … DRY RUN OVER …`.
 *
 * @param query
 *   the query as parsed
 */
case class DryRunCommand(query: LogicalPlan, sample: Sample, format: ExplainFormat)
    extends ExplainCommand {

  override def run(sparkSession: AnySession): Seq[Row] = {
    val session = castToImpl(sparkSession)
    val changes = ChangesOfQuery(session, query) { case root: ToChangelog =>
      root.copy(watched = Some(new WatchedChanges))
    }
    format(DryRun(session, sample.in(session, changes))).map(Row(_))
  }
}

/**
 * Creates a temporary folder for a checkpoint. The folder is created in the session's checkpoint
 * location, if set. Executors on remote machines can then reach the folder.
 */
private[dryrun] object ThrowawayFolder {

  def use[T](session: SparkSession)(body: Path => T): T = {
    val root = session.sessionState.conf.checkpointLocation
      .map(new Path(_))
      .getOrElse(new Path(Utils.createTempDir(namePrefix = "dry-run").toURI))
    val folder = new Path(root, s"dry-run-${UUID.randomUUID}")
    try body(folder)
    finally {
      folder.getFileSystem(session.sessionState.newHadoopConf()).delete(folder, true)
      ()
    }
  }
}
