// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.files

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.Fence

/**
 * Snapshots: the snapshots in a folder.
 *
 * {{{
 *   batch-7-2     rows after batch 7, written by the holder of term 2
 * }}}
 * Each term has separate folders. A writer without the lease therefore changes no file of another writer.
 */
class Snapshots(session: SparkSession, folder: Path) {
  import Snapshots._

  private val files: FileSystem = folder.getFileSystem(session.sessionState.newHadoopConf())

  /** Returns the newest complete snapshot, with its batch. */
  def latest: Option[(Long, Path)] = folders.find(isComplete)

  /** Returns the complete snapshots, newest first, each with its batch. */
  def all: Seq[(Long, Path)] = folders.filter(isComplete).distinctBy(_._1)

  /** Deletes snapshots replaced more than `retention` milliseconds ago, from the oldest on. */
  def retire(retention: Long): Unit = {
    val oldest = System.currentTimeMillis() - retention
    val found = folders
    val complete = found.sortBy(_._1).to(LazyList).filter(isComplete).distinctBy(_._1)
    complete
      .zip(complete.drop(1))
      .takeWhile { case (_, (_, next)) => files.getFileStatus(next).getModificationTime < oldest }
      .foreach { case ((batchId, _), _) =>
        found.filter(_._1 == batchId).foreach { case (_, path) => files.delete(path, true) }
      }
  }

  /** Returns complete and incomplete snapshots, by descending batch and term. */
  private def folders: Seq[(Long, Path)] =
    if (!files.exists(folder)) Nil
    else {
      val found = files.listStatus(folder).toSeq.map(_.getPath).flatMap { path =>
        numbersOf(path).map { case (number, by) => (number, by, path) }
      }
      found.sortBy { case (batch, term, _) => (-batch, -term) }.map { case (batch, _, path) =>
        batch -> path
      }
    }

  private def isComplete(snapshot: (Long, Path)): Boolean =
    files.exists(new Path(snapshot._2, "_SUCCESS"))
}

object Snapshots {
  private val Prefix = "batch"

  /** Returns the batch of a snapshot in a folder, if the folder is named by a batch. */
  def batchOf(snapshot: Path): Option[Long] = numbersOf(snapshot).map(_._1)

  private def numbersOf(snapshot: Path): Option[(Long, Long)] =
    snapshot.getName.split('-') match {
      case Array(Prefix, batch, term) =>
        for (number <- batch.toLongOption; by <- term.toLongOption) yield (number, by)
      case _ => None
    }

  /** Returns the path for a new snapshot, under the term held by this thread. */
  def newPath(folder: Path, batchId: Long): Path =
    new Path(folder, s"$Prefix-$batchId-${Fence.term}")
}
