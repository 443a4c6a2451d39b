// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.streaming.state.StateStoreId
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.{ThreadUtils, Utils}

import org.apache.spark.sql.changelog.checkpoint.{BatchLogs, QueryOrigin, StagedFolder}
import org.apache.spark.sql.changelog.compat.{LoggedBatch, StreamLogs, WholeStores}
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.identity.{
  InheritedState, QueryRecord, QueryRecordFile, SourceNames
}
import org.apache.spark.sql.changelog.state.PagedStateProvider

/**
 * Writes the checkpoint of a changed query that inherits state.
 *
 * {{{
 *   before                 after, with 42 as the next batch
 *   offsets/41  t 7, u 3   offsets/41  -, -      nothing read so far
 *   commits/41             commits/41
 *                          offsets/42  t 7, u 3  the next batch reads all
 *   state/0, state/1       state/0, state/1      kept state under new numbers; other state is empty
 * }}}
 */
private[evolution] class EvolvedCheckpoint(
    session: SparkSession,
    stopped: StoppedQuery,
    record: QueryRecord,
    kept: ReusableState,
    known: KnownSources,
    into: Path) {
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val staged = new StagedCheckpoint(session, stopped.checkpoint, into)
  private val first = stopped.batch + 1

  /**
   * @param held
   *   the rows of the target, if the first batch emits only differences
   * @param noted
   *   whether the origin of the checkpoint is recorded. Sinks then know whose rows a target has.
   */
  def write(held: Option[DataFrame], noted: Boolean): Unit = staged.make { folder =>
    copySources()
    kept.numbers.foreach { case (number, old) => copyState(old, number) }
    val begins = record.operators.filterNot(kept.contains).flatMap(_.ids)
    val state = new Path(folder, "state")
    val empty =
      new EmptyState(session, stopped.stateConf, state, first, stopped.numPartitions)(begins)
    held.foreach(_.write.parquet(InheritedState.resultFolder(folder).toString))
    InheritedState
      .file(folder, hadoopConf)
      .write(InheritedState(first, kept.fingerprints, held.isDefined).toJson)
    new QueryRecordFile(folder, hadoopConf).write(record)
    if (noted) {
      QueryOrigin.write(
        folder,
        hadoopConf,
        if (held.isDefined) originWithLastBatch else originsWithoutRows)
    }
    StreamLogs.writeIdentity(new Path(folder, "metadata"), hadoopConf)
    writeLogs(new StreamLogs(session, folder), empty)
  }

  /**
   * Returns the previous query and the query's last batch: the target has exactly the rows after the last batch.
   */
  private def originWithLastBatch: Seq[QueryOrigin] =
    stopped.logs.queryId.map(QueryOrigin(_, Some(stopped.batch))).toSeq

  /**
   * Returns all earlier queries as origins. The first batch emits every row, and the target must
   * not have rows of an earlier query.
   */
  private def originsWithoutRows: Seq[QueryOrigin] = {
    val earlier = QueryOrigin.read(stopped.checkpoint, hadoopConf).map(_.queryId)
    (stopped.logs.queryId ++ earlier).map(QueryOrigin(_, None)).toSeq
  }

  /**
   * @param empty
   *   the ids of the valid files of new operators
   */
  private def writeLogs(logs: StreamLogs, empty: Map[Long, Seq[Seq[String]]]): Unit = {
    val sources = record.readings.map(known.before(_))
    logs.begin(stopped.batch, stopped.offsetsOf(sources.map(_ => None)))
    // Time and watermark stand still for the first batch, because the rows were emitted before.
    logs.begin(first, stopped.offsetsOf(sources))
    val stateIds = stopped.stateIds.map { before =>
      kept.numbers.map { case (number, old) => number -> before(old) } ++ empty
    }
    logs.endAs(stopped.batch, stopped.logs, stateIds)
  }

  private def copySources(): Unit =
    known.before.zipWithIndex.foreach {
      case (Some(old), place) => staged.copy(s"sources/$old", s"sources/$place")
      case _ =>
    }

  private def copyState(old: Long, number: Long): Unit = {
    staged.copy(s"state/$old", s"state/$number")
    // The file has the operator's number, and the first batch writes it again.
    staged.delete(s"state/$number/_metadata/metadata")
  }
}

/**
 * Writes empty state for operators that start at a batch after the query's first.
 *
 * @param conf
 *   the state settings of the query
 * @param location
 *   the folder with the state of all operators
 * @param version
 *   the version read by the batch
 */
private[evolution] class EmptyState(
    session: SparkSession,
    conf: SQLConf,
    location: Path,
    version: Long,
    numPartitions: Int) {

  // Spark's own provider also reads the files of pages.
  private val whole =
    WholeStores(session, conf, () => new PagedStateProvider)

  /**
   * Writes the stores, and returns the ids of valid files of each operator, by partition and
   * store, if the format needs ids.
   */
  def apply(operators: Seq[Long]): Map[Long, Seq[Seq[String]]] = {
    val stores = for {
      operator <- operators
      partition <- 0 until numPartitions
    } yield (operator, partition)
    val stateIds = ThreadUtils.parmap(stores, "empty-state", NumThreads) {
      case (operator, partition) =>
        val id = StateStoreId(location.toString, operator, partition)
        operator -> whole.writeEmpty(id, version).toSeq
    }
    stateIds.groupMap(_._1)(_._2)
  }

  private val NumThreads = 8
}

/**
 * A checkpoint derived from an old checkpoint, staged beside the final folder. The final folder
 * appears atomically.
 *
 * @param from
 *   the old checkpoint, unchanged
 * @param into
 *   a missing or empty folder
 */
private[evolution] class StagedCheckpoint(session: SparkSession, from: Path, into: Path) {
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files = into.getFileSystem(hadoopConf)
  private val staged = new StagedFolder(into, hadoopConf)
  private val folder = staged.folder

  /** Fills a staged folder by `write`, which then becomes the checkpoint. */
  def make[T](write: Path => T): T =
    staged.fill(analysis("CHANGELOG_CHECKPOINT_EXISTS", "checkpoint" -> into))(write)

  /** Copies a path of the old checkpoint, if present. */
  def copy(old: String, now: String): Unit = {
    val source = new Path(from, old)
    if (source.getFileSystem(hadoopConf).exists(source)) staged.copy(source, now)
  }

  /** Deletes a copied path. */
  def delete(name: String): Unit = {
    files.delete(new Path(folder, name), true)
    ()
  }
}

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
