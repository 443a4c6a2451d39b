// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.{DataFrame, SparkSession}

import org.apache.spark.sql.changelog.connectors.delta.{DeltaCommit, DeltaCommits, DeltaRelation}

/**
 * Which versions of a Delta table show which batch of the query that keeps it.
 *
 * {{{
 *   version  12       the rows of a generation, which its query has computed elsewhere
 *            13       batch 4
 *            14       OPTIMIZE
 *            15       batch 6; batch 5 has changed nothing
 * }}}
 *
 * @param generation
 *   whose rows they are; what was there before is not of interest
 * @param first
 *   the first version that is of interest
 */
private class DeltaBatches(
    session: SparkSession,
    table: String,
    generation: String,
    queryId: String,
    first: Long = 0) {

  /** The commits since the rows are of the generation, as far as the log has them, the newest first. */
  private lazy val commits: LazyList[DeltaCommit] = {
    val all = DeltaCommits.newestFirst(session, table, first)
    val (after, from) = all.span(!begins(_))
    after #::: from.take(1)
  }

  private def begins(commit: DeltaCommit): Boolean =
    commit.version == 0 || commit.note.exists(_.split('/').lastOption.contains(generation))

  /** The last version, as it was when batches were looked for: a query may go on meanwhile. */
  private lazy val newest: Option[Long] = commits.headOption.map(_.version)

  /** What batches have written, each with the last version that shows it. */
  private def versions: LazyList[(Long, Option[Long])] = {
    val written = commits.flatMap(commit => commit.batchOf(queryId).map(_ -> commit.version))
    written.zip(newest #:: written.map { case (_, version) => Option(version - 1) }).map {
      case ((batch, _), last) => batch -> last
    }
  }

  /** A version whose rows neither a batch nor the generation has written, but somebody else. */
  def ofOthers: Option[Long] = commits
    .find(commit => commit.changesRows && commit.batchOf(queryId).isEmpty && !begins(commit))
    .map(_.version)

  /** The rows that batches have written. */
  def written: LazyList[KeptRows] = versions.map { case (batch, last) =>
    KeptRows(batch, () => read(last))
  }

  /**
   * The same, and the rows of batches before.
   *
   * @param before
   *   those the generation had elsewhere before it was shown; if none, the first rows are those of
   *   all batches until one has written any
   */
  def shown(before: => LazyList[KeptRows]): LazyList[KeptRows] = written #::: {
    if (before.nonEmpty) before
    else {
      commits.lastOption
        .filter(begins)
        .map { _ =>
          val next = commits.filter(_.batchOf(queryId).isDefined).lastOption
          KeptRows(0, () => read(next.map(_.version - 1).orElse(newest)))
        }
        .to(LazyList)
    }
  }

  private def read(version: Option[Long]): Option[DataFrame] = {
    val reader = version.fold(session.read)(session.read.option("versionAsOf", _))
    val rows = reader.table(table)
    // those of the newest are there
    Option.when(version == newest || filesOf(rows).forall(exists))(rows)
  }

  private def filesOf(rows: DataFrame): Seq[Path] =
    rows.queryExecution.analyzed.collect { case DeltaRelation(table) =>
      table.snapshot.files
    }.flatten

  private def exists(path: Path): Boolean =
    path.getFileSystem(session.sessionState.newHadoopConf()).exists(path)
}
