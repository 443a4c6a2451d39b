// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

/**
 * A file that a commit adds, removes or tells changes by.
 *
 * @param bytes
 *   without rows that a deletion vector marks, as far as statistics tell how many those are
 * @param rows
 *   none if its statistics don't tell
 * @param partition
 *   the values of the partition columns, by the names that the columns have in files
 */
private[changelog] final case class DeltaFileChange(
    path: String,
    bytes: Long,
    rows: Option[Long],
    changesData: Boolean = true,
    isGone: Boolean = false,
    isFeed: Boolean = false,
    partition: Map[String, String] = Map.empty)

/**
 * The files of a commit.
 *
 * @param copied
 *   the number of unchanged rows that were rewritten, as far as the commit tells it
 * @param replaced
 *   the number of rows of the same files that were deleted or updated
 */
private[changelog] final case class DeltaFileChanges(
    files: Seq[DeltaFileChange],
    copied: Long = 0,
    replaced: Long = 0)

/** The number of bytes to read for the changes of a commit. */
private[changelog] object DeltaCommitSize {

  def apply(commit: DeltaFileChanges): Long = {
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

  /** The size of files with so many rows, of which `copied` ones are unchanged. */
  private def bytes(files: Seq[DeltaFileChange], copied: Long, rows: Long): Long = {
    val share = if (copied == 0 || rows == 0) 0.0 else math.min(1.0, copied.toDouble / rows)
    math.round(files.map(_.bytes).sum * (1 - share * (1 - Cancelled)))
  }

  /** The cost of an unchanged row that is read twice and cancels out, as a share of that of a changed row. */
  private val Cancelled = 0.25
}
