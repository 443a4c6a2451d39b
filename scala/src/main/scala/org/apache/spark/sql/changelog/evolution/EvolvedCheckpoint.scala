// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.streaming.state.StateStoreId
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.ThreadUtils

import org.apache.spark.sql.changelog.checkpoint.{QueryOrigin, StagedFolder}
import org.apache.spark.sql.changelog.compat.{StreamLogs, WholeStores}
import org.apache.spark.sql.changelog.errors.EvolutionErrors
import org.apache.spark.sql.changelog.identity.{InheritedState, QueryRecord, QueryRecordFile}
import org.apache.spark.sql.changelog.state.PagedStateProvider

/**
 * Writes the checkpoint of a query that goes on with state of another one.
 *
 * {{{
 *   before                 after, whose next batch is 42
 *   offsets/41  t 7, u 3   offsets/41  -, -      as if nothing had been read
 *   commits/41             commits/41
 *                          offsets/42  t 7, u 3  all of it belongs to the batch that is to be run
 *   state/0, state/1       state/0, state/1      those that are kept, by their new numbers; others empty
 * }}}
 */
private[evolution] class EvolvedCheckpoint(
    session: SparkSession,
    begun: StoppedQuery,
    record: QueryRecord,
    kept: ReusableState,
    known: KnownSources,
    into: Path) {
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val staged = new StagedCheckpoint(session, begun.checkpoint, into)
  private val first = begun.batch + 1

  /**
   * @param held
   *   what the target holds, if the first batch is to bring what differs
   * @param noted
   *   whether it is written down where it comes from, for sinks to know whose rows a target holds
   */
  def write(held: Option[DataFrame], noted: Boolean): Unit = staged.make { folder =>
    copySources()
    kept.numbers.foreach { case (number, old) => copyState(old, number) }
    val begins = record.operators.filterNot(kept.contains).flatMap(_.ids)
    val state = new Path(folder, "state")
    val empty =
      new EmptyState(session, begun.stateConf, state, first, begun.numPartitions)(begins)
    held.foreach(_.write.parquet(InheritedState.resultIn(folder).toString))
    InheritedState
      .file(folder, hadoopConf)
      .write(InheritedState(first, kept.fingerprints, held.isDefined).toJson)
    new QueryRecordFile(folder, hadoopConf).write(record)
    if (noted) {
      QueryOrigin.write(folder, hadoopConf, if (held.isDefined) originHeld else originsGone)
    }
    StreamLogs.writeIdentity(new Path(folder, "metadata"), hadoopConf)
    writeLogs(new StreamLogs(session, folder), empty)
  }

  /** What the target has been told holds the rows after the last batch, whatever it has held before. */
  private def originHeld: Seq[QueryOrigin] =
    begun.logs.queryId.map(QueryOrigin(_, Some(begun.batch))).toSeq

  /** The first batch brings all rows: none of an earlier query may be there. */
  private def originsGone: Seq[QueryOrigin] = {
    val earlier = QueryOrigin.read(begun.checkpoint, hadoopConf).map(_.queryId)
    (begun.logs.queryId ++ earlier).map(QueryOrigin(_, None)).toSeq
  }

  /** @param empty which files count of the operators that begin */
  private def writeLogs(logs: StreamLogs, empty: Map[Long, Seq[Seq[String]]]): Unit = {
    val sources = record.readings.map(known.before(_))
    logs.begin(begun.batch, begun.offsetsOf(sources.map(_ => None)))
    // neither the time nor the watermark moves on, for what has been emitted
    logs.begin(first, begun.offsetsOf(sources))
    val stateIds = begun.stateIds.map { before =>
      kept.numbers.map { case (number, old) => number -> before(old) } ++ empty
    }
    logs.endAs(begun.batch, begun.logs, stateIds)
  }

  private def copySources(): Unit =
    known.before.zipWithIndex.foreach {
      case (Some(old), place) => staged.copy(s"sources/$old", s"sources/$place")
      case _ =>
    }

  private def copyState(old: Long, number: Long): Unit = {
    staged.copy(s"state/$old", s"state/$number")
    // it tells the number, and is written anew when the query begins
    staged.delete(s"state/$number/_metadata/metadata")
  }
}

/**
 * Writes state that holds nothing, of operators that begin with a batch which is not the query's first.
 *
 * @param conf
 *   the settings with which the query keeps state
 * @param location
 *   the folder that holds that of all operators
 * @param version
 *   which the batch will read
 */
private[evolution] class EmptyState(
    session: SparkSession,
    conf: SQLConf,
    location: Path,
    version: Long,
    numPartitions: Int) {

  // pages are kept in files that Spark's own provider reads too
  private val whole =
    WholeStores(session, conf, () => new PagedStateProvider)

  /** Gives which files of each operator count, by partition and store, where that is to be said. */
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
 * A checkpoint that is made of another one, beside the folder that it becomes: it is there whole or not at all.
 *
 * @param from
 *   the other one, which stays as it is
 * @param into
 *   a folder that is not there yet, or is empty
 */
private[evolution] class StagedCheckpoint(session: SparkSession, from: Path, into: Path) {
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files = into.getFileSystem(hadoopConf)
  private val staged = new StagedFolder(into, hadoopConf)
  private val folder = staged.folder

  /** Lets `write` fill a folder, which then is the checkpoint. */
  def make[T](write: Path => T): T =
    staged.fill(EvolutionErrors.checkpointExists(into.toString))(write)

  /** Copies what the other checkpoint has under a name, if it has it. */
  def copy(old: String, now: String): Unit = {
    val source = new Path(from, old)
    if (source.getFileSystem(hadoopConf).exists(source)) staged.copy(source, now)
  }

  /** Leaves out what has been copied. */
  def delete(name: String): Unit = {
    files.delete(new Path(folder, name), true)
    ()
  }
}
