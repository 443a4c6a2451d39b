// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

/**
 * A file that a commit adds, removes, or writes for the change data feed.
 *
 * @param bytes
 *   the size without rows marked by a deletion vector, as far as statistics tell
 * @param rows
 *   None without statistics
 * @param partition
 *   the values of the partition columns, by the columns' names in files
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
 *   the number of unchanged rows in rewritten files, if the commit reports the number
 * @param replaced
 *   the number of deleted or updated rows in rewritten files
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
      // A file removed and added again has a new deletion vector. Only the rows marked by the vector are read.
      val (vectors, whole) =
        commit.files.filter(_.changesData).groupBy(_.path).values.partition(_.size > 1)
      val marked = vectors.map(same => same.map(_.bytes).max - same.map(_.bytes).min).sum
      val (gone, come) = whole.flatten.toSeq.partition(_.isGone)
      marked + bytes(gone, commit.copied, commit.copied + commit.replaced) +
        bytes(come, commit.copied, come.flatMap(_.rows).sum)
    }
  }

  /** Returns the cost of files with `rows` rows, of which `copied` rows are unchanged. */
  private def bytes(files: Seq[DeltaFileChange], copied: Long, rows: Long): Long = {
    val share = if (copied == 0 || rows == 0) 0.0 else math.min(1.0, copied.toDouble / rows)
    math.round(files.map(_.bytes).sum * (1 - share * (1 - Cancelled)))
  }

  /** The cost of an unchanged row, which is read twice and cancels out, relative to a changed row. */
  private val Cancelled = 0.25
}
