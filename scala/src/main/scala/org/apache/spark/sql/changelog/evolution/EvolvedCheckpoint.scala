// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.{DataFrame, SparkSession}

import org.apache.spark.sql.changelog.checkpoint.QueryOrigin
import org.apache.spark.sql.changelog.compat.StreamLogs
import org.apache.spark.sql.changelog.identity.{QueryRecord, QueryRecordFile, TakenOver}

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
    begun: BegunQuery,
    record: QueryRecord,
    kept: KeptParts,
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
    held.foreach(_.write.parquet(TakenOver.resultIn(folder).toString))
    TakenOver
      .file(folder, hadoopConf)
      .write(TakenOver(first, kept.fingerprints, held.isDefined).toJson)
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
