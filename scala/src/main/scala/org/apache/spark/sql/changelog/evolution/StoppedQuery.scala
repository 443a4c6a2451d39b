// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.compat.{LoggedBatch, StreamLogs, WholeStores}
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.identity.{QueryRecord, QueryRecordFile, SourceNames}
import org.apache.spark.sql.changelog.state.PagedStateProvider

/**
 * A query stopped between two batches, read from its checkpoint.
 *
 * @param refused
 *   the error if the query cannot be changed, given the reason
 */
private[evolution] class StoppedQuery(
    session: SparkSession,
    val checkpoint: Path,
    refused: String => AnalysisException) {

  /** The logs of the query, entry by entry. */
  val logs = new StreamLogs(session, checkpoint)

  private val batches = new BatchLogs(session, checkpoint)

  private def refuse(reason: String): Nothing = throw refused(reason)

  /** The last batch, which is done. */
  val batch: Long = {
    val done = batches.lastDone.getOrElse(refuse("no batch of the query is done"))
    batches.lastBegun.filter(_ != done).foreach { begun =>
      refuse(
        s"batch $begun has started and is not done; start the old query again, to end the batch")
    }
    if (logs.isActive) refuse("the query is running; stop the query first")
    if (batches.isWithoutState) refuse("the state is not computed yet; start the old query once")
    done
  }

  /** The ids of valid state files, if each attempt of a task leaves files. */
  val stateIds: Option[Map[Long, Seq[Seq[String]]]] = logs.stateIds(batch)

  /** The offsets of the last batch. */
  val offsets: LoggedBatch =
    logs.offsets(batch).getOrElse(refuse(s"the offsets of batch $batch are not known"))

  val record: QueryRecord =
    new QueryRecordFile(checkpoint, session.sessionState.newHadoopConf()).read()

  /** The folder with the state of all operators. */
  val state: Path = new Path(checkpoint, "state")

  /** The state settings of the query. */
  lazy val stateConf: SQLConf = {
    val conf = session.sessionState.conf.clone()
    offsets.use(conf)
    conf.setConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION, if (stateIds.isDefined) 2 else 1)
    conf
  }

  def stateProvider: String = stateConf.getConf(SQLConf.STATE_STORE_PROVIDER_CLASS)

  /** Whether the state files can be read outside a query. */
  def hasReadableState: Boolean =
    WholeStores.canRead(stateProvider) ||
      Try(Utils.classForName[AnyRef](stateProvider)).toOption
        .exists(classOf[PagedStateProvider].isAssignableFrom(_))

  /** The number of state partitions. */
  def numPartitions: Int = record.settings(ChangelogConf.STATE_PARTITIONS.key).toInt

  /**
   * Returns the position of a changed query's stream in [[QueryRecord.streams]], unless the
   * stream is new.
   */
  def placeOf(stream: LogicalPlan): Option[Int] =
    Some(record.streams.indexOf(SourceNames(stream).head)).filter(_ >= 0)

  /** Returns the folder with the log of a source. */
  def folderOf(source: Int): Path = new Path(checkpoint, s"sources/$source")

  /**
   * Returns the last offset of a source, in the source's format, if any. Without offsets by
   * position, as for named sources, the outer option is empty.
   */
  def endOf(source: Int): Option[Option[String]] =
    offsets.inOrder.map(_(record.readings.indexOf(source)))

  /**
   * Returns the offsets of the streams of a changed query.
   *
   * @param sources
   *   for each stream its position in [[QueryRecord.streams]]; None for a new stream
   */
  def offsetsOf(sources: Seq[Option[Int]]): LoggedBatch =
    offsets
      .of(sources.map(_.map(source => record.readings.indexOf(source))))
      .getOrElse(refuse("a source of the query has a name of its own"))
}
