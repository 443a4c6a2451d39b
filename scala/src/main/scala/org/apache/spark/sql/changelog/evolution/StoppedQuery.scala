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
 * A query that has run, and is stopped between two batches, as its checkpoint tells.
 *
 * @param refused
 *   the error where it can't go on otherwise than it was, given the reason
 */
private[evolution] class StoppedQuery(
    session: SparkSession,
    val checkpoint: Path,
    refused: String => AnalysisException) {

  /** Its logs, entry by entry. */
  val logs = new StreamLogs(session, checkpoint)

  private val batches = new BatchLogs(session, checkpoint)

  private def refuse(reason: String): Nothing = throw refused(reason)

  /** The last batch, which is done. */
  val batch: Long = {
    val done = batches.lastDone.getOrElse(refuse("no batch of it is done"))
    batches.lastBegun.filter(_ != done).foreach { begun =>
      refuse(
        s"batch $begun was begun and is not done; start the query once more as it was, so that it ends")
    }
    if (logs.isActive) refuse("the query it is of is running; stop that first")
    if (batches.isWithoutState) refuse("its state has not been computed; start it once as it was")
    done
  }

  /** Which files of its state count, if each attempt of a task has some of its own. */
  val stateIds: Option[Map[Long, Seq[Seq[String]]]] = logs.stateIds(batch)

  /** The offsets of the last batch. */
  val offsets: LoggedBatch =
    logs.offsets(batch).getOrElse(refuse(s"what batch $batch has read isn't known"))

  val record: QueryRecord =
    new QueryRecordFile(checkpoint, session.sessionState.newHadoopConf()).read()

  /** The folder with the state of all its operators. */
  val state: Path = new Path(checkpoint, "state")

  /** The settings with which it keeps state. */
  lazy val stateConf: SQLConf = {
    val conf = session.sessionState.conf.clone()
    offsets.use(conf)
    conf.setConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION, if (stateIds.isDefined) 2 else 1)
    conf
  }

  def stateProvider: String = stateConf.getConf(SQLConf.STATE_STORE_PROVIDER_CLASS)

  /** Whether its state is kept in files that can be read outside of a query. */
  def hasReadableState: Boolean =
    WholeStores.canRead(stateProvider) ||
      Try(Utils.classForName[AnyRef](stateProvider)).toOption
        .exists(classOf[PagedStateProvider].isAssignableFrom(_))

  /** In how many partitions it keeps its state. */
  def numPartitions: Int = record.settings(ChangelogConf.STATE_PARTITIONS.key).toInt

  /** Which of [[QueryRecord.streams]] a stream of a changed query is; none if it is new. */
  def placeOf(stream: LogicalPlan): Option[Int] =
    Some(record.streams.indexOf(SourceNames(stream).head)).filter(_ >= 0)

  /** The folder in which one of its sources has noted what it has given. */
  def folderOf(source: Int): Path = new Path(checkpoint, s"sources/$source")

  /** Up to where one of its sources was read, as that puts it, if it was; none where sources have names. */
  def endOf(source: Int): Option[Option[String]] =
    offsets.inOrder.map(_(record.readings.indexOf(source)))

  /**
   * How far the streams of a changed query have been read.
   *
   * @param sources
   *   which of [[QueryRecord.streams]] each of them reads; none of one that is new
   */
  def offsetsOf(sources: Seq[Option[Int]]): LoggedBatch =
    offsets
      .of(sources.map(_.map(source => record.readings.indexOf(source))))
      .getOrElse(refuse("its sources have names of their own"))
}
