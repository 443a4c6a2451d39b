// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.changelog.sources.tables.DeltaMethods.{Commit, FileChange}

/** How many bytes are to be gone through to know what a commit of Delta's has changed. */
private[tables] object DeltaCommitSize {

  def apply(commit: Commit): Long = {
    val feed = commit.files.filter(_.isFeed)
    if (feed.nonEmpty) feed.map(_.bytes).sum
    else {
      // a file that is removed and added again has another deletion vector: only those rows are read
      val (vectors, whole) =
        commit.files.filter(_.changesData).groupBy(_.path).values.partition(_.size > 1)
      val marked = vectors.map(same => same.map(_.bytes).max - same.map(_.bytes).min).sum
      val (gone, come) = whole.flatten.toSeq.partition(_.isGone)
      marked + bytes(gone, commit.copied, commit.copied + commit.replaced) +
        bytes(come, commit.copied, come.flatMap(_.rows).sum)
    }
  }

  /** Of files with so many rows some are as they were. */
  private def bytes(files: Seq[FileChange], copied: Long, rows: Long): Long = {
    val share = if (copied == 0 || rows == 0) 0.0 else math.min(1.0, copied.toDouble / rows)
    math.round(files.map(_.bytes).sum * (1 - share * (1 - Cancelled)))
  }

  /** What a row costs that is read twice and cancels out, of what one costs that has changed. */
  private val Cancelled = 0.25
}
