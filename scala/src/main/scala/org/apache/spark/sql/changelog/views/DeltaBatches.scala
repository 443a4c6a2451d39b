// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.{DataFrame, SparkSession}

import org.apache.spark.sql.changelog.connectors.delta.{DeltaCommit, DeltaCommits, DeltaRelation}

/**
 * Maps the batches of a view's query to the versions of the view's Delta table.
 *
 * {{{
 *   version  12       the rows of a generation, computed by its query in a staging folder
 *            13       batch 4
 *            14       OPTIMIZE
 *            15       batch 6; batch 5 has changed nothing
 * }}}
 *
 * @param generation
 *   the generation of the rows. Earlier commits are ignored.
 * @param first
 *   the first version to read
 */
private class DeltaBatches(
    session: SparkSession,
    table: String,
    generation: String,
    queryId: String,
    first: Long = 0) {

  /** The commits since the table shows the generation, newest first, as far as the log reaches. */
  private lazy val commits: LazyList[DeltaCommit] = {
    val all = DeltaCommits.newestFirst(session, table, first)
    val (after, from) = all.span(!begins(_))
    after #::: from.take(1)
  }

  private def begins(commit: DeltaCommit): Boolean =
    commit.version == 0 || commit.note.exists(_.split('/').lastOption.contains(generation))

  /** The newest version at the first call. A running query may commit more versions meanwhile. */
  private lazy val newest: Option[Long] = commits.headOption.map(_.version)

  /** Returns each written batch with the last version that shows the batch. */
  private def versions: LazyList[(Long, Option[Long])] = {
    val written = commits.flatMap(commit => commit.batchOf(queryId).map(_ -> commit.version))
    written.zip(newest #:: written.map { case (_, version) => Option(version - 1) }).map {
      case ((batch, _), last) => batch -> last
    }
  }

  /** Returns a version whose rows were written neither by a batch nor by the generation, but by another writer. */
  def otherWriterVersion: Option[Long] = commits
    .find(commit => commit.changesRows && commit.batchOf(queryId).isEmpty && !begins(commit))
    .map(_.version)

  /** Returns the rows of each written batch. */
  def written: LazyList[ViewSnapshot] = versions.map { case (batch, last) =>
    ViewSnapshot(batch, () => read(last))
  }

  /**
   * Returns the rows of each written batch, then the rows of earlier batches.
   *
   * @param before
   *   the rows staged before the table showed the generation. If empty, the first rows stand for all batches before the
   *   first written batch.
   */
  def shown(before: => LazyList[ViewSnapshot]): LazyList[ViewSnapshot] = written #::: {
    if (before.nonEmpty) before
    else {
      commits.lastOption
        .filter(begins)
        .map { _ =>
          val next = commits.filter(_.batchOf(queryId).isDefined).lastOption
          ViewSnapshot(0, () => read(next.map(_.version - 1).orElse(newest)))
        }
        .to(LazyList)
    }
  }

  private def read(version: Option[Long]): Option[DataFrame] = {
    val reader = version.fold(session.read)(session.read.option("versionAsOf", _))
    val rows = reader.table(table)
    // The files of the newest version always exist.
    Option.when(version == newest || filesOf(rows).forall(exists))(rows)
  }

  private def filesOf(rows: DataFrame): Seq[Path] =
    rows.queryExecution.analyzed.collect { case DeltaRelation(table) =>
      table.snapshot.files
    }.flatten

  private def exists(path: Path): Boolean =
    path.getFileSystem(session.sessionState.newHadoopConf()).exists(path)
}
