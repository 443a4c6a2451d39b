// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.savepoints

import java.io.FileNotFoundException

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.util.ThreadUtils

import org.apache.spark.sql.changelog.checkpoint.{BatchLogs, QueryOrigin, StagedFolder}
import org.apache.spark.sql.changelog.compat.StreamLogs
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.identity.InheritedState
import org.apache.spark.sql.changelog.sources.SourceFiles

/**
 * ForkableCheckpoint: a checkpoint from whose batches a second query can continue. The original query may be running.
 *
 * {{{
 *   original                      copy after batch 5, with 6 as the next batch
 *   offsets/0 … 7, commits/0 … 7  offsets/4, offsets/5, commits/5
 *   state/0/0/1.delta … 8.delta   state/0/0/1.delta … 6.delta    the files behind version 6
 *   sources, changelog/plan.json  equal
 *   metadata                      a new query id, by which sinks distinguish both queries
 * }}}
 *
 * @param shown
 *   the owner of the batches, as named for users
 */
class ForkableCheckpoint(session: SparkSession, checkpoint: Path, shown: String) {
  import ForkableCheckpoint._

  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files: FileSystem = checkpoint.getFileSystem(hadoopConf)
  private val batches = new BatchLogs(session, checkpoint)
  private val logs = new StreamLogs(session, checkpoint)
  private val state = new StateFolder(session, checkpoint, files)

  import batches.{begun, done}

  /** The first batch, for a checkpoint created from the checkpoint of another query. */
  private lazy val first: Long = InheritedState
    .file(checkpoint, hadoopConf)
    .find()
    .fold(0L)(InheritedState.fromJson(_).batch)

  /** Returns why no query can continue from a batch, if so. */
  private def obstacle(batch: Long): Option[String] =
    if (!done(batch) && done.exists(_ > batch)) {
      Some("The checkpoint no longer has the batch.")
    } else if (!done(batch)) Some("The batch is not committed.")
    else if (batch < first) {
      Some("The batch belongs to the previous query, from which the checkpoint was made.")
    } else if (!begun(batch) || batch > 0 && !begun(batch - 1)) {
      Some("The checkpoint no longer has the offsets of the batch.")
    } else {
      val source = batches.readBy(batch).flatMap { case (folder, offset) =>
        SourceFiles.missing(files, folder, offset)
      }
      source.headOption
        .map(path => s"The source has deleted the file $path.")
        .orElse(
          state
            .storeWithoutFiles(batch + 1, logs.stateIds(batch))
            .map(path => s"Files of the state in $path are missing."))
    }

  /** Returns the batches from which a query can continue. */
  def possible: Seq[Long] = done.toSeq.sorted.filter(obstacle(_).isEmpty)

  /** Returns `batch`, or the last batch done. Fails if no query can continue from this batch. */
  def checked(batch: Option[Long]): Long = {
    val last = done.maxOption.getOrElse {
      throw analysis(
        "CHANGELOG_FORK_NOT_POSSIBLE",
        "of" -> shown,
        "reason" -> "no batch is committed. Start the query first")
    }
    val wanted = batch.getOrElse(last)
    obstacle(wanted).foreach { reason =>
      throw batchGone(shown, wanted, reason, possible)
    }
    wanted
  }

  /** Returns the start of a batch, in ms. */
  def timeOf(batch: Long): Option[Long] = batches.timeOf(batch)

  /**
   * Creates a checkpoint to continue from a batch, in one step.
   *
   * @param into
   *   a missing or empty folder
   * @param noted
   *   whether to record the origin, for sinks to recognize the rows in the target
   */
  def fork(batch: Long, into: Path, noted: Boolean): Unit = attempt(batch, into, noted, Attempts)

  /** Retries, because a running query may delete a file during the copy. */
  private def attempt(batch: Long, into: Path, noted: Boolean, left: Int): Unit = {
    checked(Some(batch))
    val isDone =
      try {
        val staged = new StagedFolder(into, hadoopConf)
        staged.fill(analysis("CHANGELOG_CHECKPOINT_EXISTS", "checkpoint" -> into)) { folder =>
          copyTo(staged, batch)
          complete(folder, batch, noted)
        }
        true
      } catch {
        case error: Throwable if isGone(error) =>
          if (left == 1) {
            val reason = s"A file of the batch is missing: ${error.getMessage}."
            throw batchGone(shown, batch, reason, possible.filter(_ != batch))
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
    // The running query may have deleted files during the copy.
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

  /** Returns a path relative to the checkpoint. */
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

  /** Returns the checkpoint in a folder known to users. */
  def apply(session: SparkSession, checkpoint: Path): ForkableCheckpoint =
    new ForkableCheckpoint(session, checkpoint, s"the checkpoint $checkpoint")

  /**
   * @param of
   *   the owner of the batches in the user's terms, such as "the view v"
   * @param possible
   *   the batches from which a query can continue
   */
  def batchGone(
      of: String,
      batch: Long,
      reason: String,
      possible: Seq[Long]): AnalysisException = {
    val ends = possible.sorted.foldLeft(List.empty[(Long, Long)]) {
      case ((first, last) :: rest, batch) if batch == last + 1 => (first, batch) :: rest
      case (ends, batch) => (batch, batch) :: ends
    }
    val ranges = ends.reverse.map { case (first, last) =>
      if (first == last) s"batch $first" else s"batch $first to batch $last"
    }
    analysis(
      "CHANGELOG_BATCH_GONE",
      "of" -> of,
      "batch" -> batch,
      "reason" -> reason,
      "possible" -> (if (ranges.isEmpty) "no batch" else ranges))
  }
}
