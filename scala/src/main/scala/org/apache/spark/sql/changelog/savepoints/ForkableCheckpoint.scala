// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.savepoints

import java.io.FileNotFoundException

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.util.ThreadUtils

import org.apache.spark.sql.changelog.checkpoint.{BatchLogs, QueryOrigin, StagedFolder}
import org.apache.spark.sql.changelog.compat.StreamLogs
import org.apache.spark.sql.changelog.errors.{EvolutionErrors, SavepointErrors}
import org.apache.spark.sql.changelog.identity.InheritedState
import org.apache.spark.sql.changelog.sources.SourceFiles

/**
 * A checkpoint from whose batches a query can go on a second time. Its own query may run meanwhile.
 *
 * {{{
 *   before                        after batch 5, whose next is 6
 *   offsets/0 … 7, commits/0 … 7  offsets/4, offsets/5, commits/5
 *   state/0/0/1.delta … 8.delta   state/0/0/1.delta … 6.delta    what version 6 is read from
 *   sources, changelog/plan.json  the same
 *   metadata                      another query's, which sinks tell from the first
 * }}}
 *
 * @param shown
 *   what has the batches, as users name it
 */
class ForkableCheckpoint(session: SparkSession, checkpoint: Path, shown: String) {
  import ForkableCheckpoint._

  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files: FileSystem = checkpoint.getFileSystem(hadoopConf)
  private val batches = new BatchLogs(session, checkpoint)
  private val logs = new StreamLogs(session, checkpoint)
  private val state = new StateFolder(session, checkpoint, files)

  private lazy val (begun, done) = (batches.begun, batches.done)

  /** The batch with which it begins, if it was made of another query's. */
  private lazy val first: Long = InheritedState
    .file(checkpoint, hadoopConf)
    .find()
    .fold(0L)(InheritedState.fromJson(_).batch)

  /** Why nothing can go on from a batch, if it is so. */
  private def obstacle(batch: Long): Option[String] =
    if (!done(batch)) Some(if (done.exists(_ > batch)) "it is forgotten" else "it is not done")
    else if (batch < first) Some("it is of the query before, of which this checkpoint was made")
    else if (!begun(batch) || batch > 0 && !begun(batch - 1)) {
      Some("up to where it has read its sources is forgotten")
    } else {
      val source = batches.readBy(batch).flatMap { case (folder, offset) =>
        SourceFiles.missing(files, folder, offset)
      }
      source.headOption
        .map(path => s"its source has deleted $path")
        .orElse(
          state
            .lacking(batch + 1, logs.stateIds(batch))
            .map(path => s"files of its state in $path are gone"))
    }

  /** The batches from which a query can go on. */
  def possible: Seq[Long] = done.toSeq.sorted.filter(obstacle(_).isEmpty)

  /** A batch from which a query can go on; the last one that is done, if none is named. */
  def checked(batch: Option[Long]): Long = {
    val last = done.maxOption.getOrElse {
      throw SavepointErrors.forkNotPossible(
        shown,
        "no batch of it is done; start the query first")
    }
    val wanted = batch.getOrElse(last)
    obstacle(wanted).foreach { reason =>
      throw SavepointErrors.batchGone(shown, wanted, reason, possible)
    }
    wanted
  }

  /** When a batch was begun, in ms. */
  def timeOf(batch: Long): Option[Long] = batches.timeOf(batch)

  /**
   * Makes a checkpoint with which a query goes on after a batch, at once.
   *
   * @param into
   *   a folder that is not there yet, or is empty
   * @param noted
   *   whether it is written down where it comes from, for sinks to know whose rows a target holds
   */
  def fork(batch: Long, into: Path, noted: Boolean): Unit = attempt(batch, into, noted, Attempts)

  /** The query may run, and delete a file while it is copied. */
  private def attempt(batch: Long, into: Path, noted: Boolean, left: Int): Unit = {
    checked(Some(batch))
    val isDone =
      try {
        val staged = new StagedFolder(into, hadoopConf)
        staged.fill(EvolutionErrors.checkpointExists(into.toString)) { folder =>
          copyTo(staged, batch)
          complete(folder, batch, noted)
        }
        true
      } catch {
        case error: Throwable if isGone(error) =>
          if (left == 1) {
            val reason = s"a file of it is gone, as ${error.getMessage}"
            throw SavepointErrors.batchGone(shown, batch, reason, possible.filter(_ != batch))
          }
          false
      }
    if (!isDone) {
      new ForkableCheckpoint(session, checkpoint, shown).attempt(batch, into, noted, left - 1)
    }
  }

  private def copyTo(staged: StagedFolder, batch: Long): Unit = {
    val logged = Seq(s"offsets/${batch - 1}", s"offsets/$batch", s"commits/$batch")
    val small =
      (logged :+ "changelog/plan.json").map(new Path(checkpoint, _)).filter(files.exists)
    val sources = Some(new Path(checkpoint, "sources")).filter(files.exists).toSeq
    val all = small ++ sources ++ state.filesOf(batch + 1, logs.stateIds(batch))
    ThreadUtils.parmap(all.distinct, "fork-checkpoint", StateFolder.NumThreads) { path =>
      staged.copy(path, placeOf(path))
    }
    ()
  }

  private def complete(staged: Path, batch: Long, noted: Boolean): Unit = {
    // what its query has deleted meanwhile may be missing
    new ForkableCheckpoint(session, staged, shown).obstacle(batch).foreach { reason =>
      throw new FileNotFoundException(reason)
    }
    StreamLogs.writeIdentity(new Path(staged, "metadata"), hadoopConf)
    if (noted) {
      val origins =
        logs.queryId.map(QueryOrigin(_, Some(batch))).toSeq ++
          QueryOrigin.read(checkpoint, hadoopConf)
      QueryOrigin.write(staged, hadoopConf, origins)
    }
  }

  /** Where in the checkpoint something lies. */
  private def placeOf(path: Path): String =
    files.makeQualified(checkpoint).toUri.relativize(files.makeQualified(path).toUri).getPath

  private def isGone(error: Throwable): Boolean =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).exists {
      case _: FileNotFoundException | _: java.nio.file.NoSuchFileException => true
      case _ => false
    }
}

object ForkableCheckpoint {
  private val Attempts = 3

  /** One of which users know the folder. */
  def apply(session: SparkSession, checkpoint: Path): ForkableCheckpoint =
    new ForkableCheckpoint(session, checkpoint, s"the checkpoint $checkpoint")
}
