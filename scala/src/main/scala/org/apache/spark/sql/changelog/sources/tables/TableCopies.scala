// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import java.io.{Closeable, FileNotFoundException}
import java.time.Duration
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.types.{StringType, StructType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.checkpoint.TextFile

/**
 * TableCopies: copies of a table's rows, beside a checkpoint.
 *
 * {{{
 *   <folder>/version-7           names the copy of version 7
 *   <folder>/copy-<id>/rows      all rows
 *   <folder>/copy-<id>/changes   the differences from the previous version
 *   <folder>/lent-<id>           names a copy with a second reader
 * }}}
 * Copies have generated column names. The names of a database's columns may differ only in case, or contain characters
 * not permitted in files.
 */
private[tables] class TableCopies(session: SparkSession, folder: Path, table: StructType) {
  import TableCopies._

  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files: FileSystem = folder.getFileSystem(hadoopConf)

  /** The column names in a copy. */
  val columns: Seq[String] = table.indices.map(place => s"c$place")

  private val schema: StructType = {
    val fields =
      table.asNullable.zip(columns).map { case (field, name) => field.copy(name = name) }
    StructType(fields.toSeq)
  }

  /** Writes a copy, and returns the copy's name. */
  def write(rows: DataFrame): String = {
    val copy = s"$Copy${UUID.randomUUID}"
    rows.toDF(columns: _*).write.parquet(rowsOf(copy))
    copy
  }

  def rows(copy: String): DataFrame = session.read.schema(schema).parquet(rowsOf(copy))

  def writeChanges(copy: String, changes: DataFrame): Unit =
    changes.write.mode("overwrite").parquet(changesOf(copy))

  def changes(copy: String): DataFrame =
    session.read
      .schema(schema.add(RowKind.ChangeTypeColumnName, StringType))
      .parquet(changesOf(copy))

  /** Makes a copy the content of a version. */
  def name(version: Long, copy: String): Unit = file(version).write(copy)

  /** Returns the copy of a version. */
  def named(version: Long): String = file(version).read()

  def delete(copy: String): Unit = {
    files.delete(new Path(folder, copy), true)
    ()
  }

  /** Deletes the remains of a refresh that ended before its version was recorded. */
  def deleteUnnamed(): Unit = {
    val named = versions.map(this.named).toSet
    deleteWithoutLoans(listed(Copy).filterNot(named))
  }

  def deleteBefore(version: Long): Unit = {
    val (old, kept) = versions.partition(_ < version)
    val named = kept.map(this.named).toSet
    val copies = old.map(this.named).filterNot(named)
    // Version files are deleted before the search for loans, because a new reader creates a loan before checking the
    // version file.
    old.foreach(version => files.delete(path(version), false))
    deleteWithoutLoans(copies)
  }

  /** Deletes copies without loans. A lent copy is deleted later, as a copy without a name. */
  private def deleteWithoutLoans(copies: Seq[String]): Unit =
    if (copies.nonEmpty) {
      val oldest = System.currentTimeMillis() - LongestLoan.toMillis
      val (old, recent) = statuses(Lent).partition(_.getModificationTime < oldest)
      old.foreach(status => files.delete(status.getPath, false))
      val lent = recent.flatMap(status => new TextFile(status.getPath, hadoopConf).find())
      copies.filterNot(lent.toSet).foreach(delete)
    }

  private def versions: Seq[Long] =
    listed(Version).flatMap(_.drop(Version.length).toLongOption)

  private def listed(prefix: String): Seq[String] = statuses(prefix).map(_.getPath.getName)

  private def statuses(prefix: String): Seq[FileStatus] =
    if (!files.exists(folder)) Nil
    else files.listStatus(folder).toSeq.filter(_.getPath.getName.startsWith(prefix))

  private def file(version: Long) = new TextFile(path(version), hadoopConf)

  private def path(version: Long) = new Path(folder, s"$Version$version")

  private def rowsOf(copy: String): String = new Path(folder, s"$copy/rows").toString

  private def changesOf(copy: String): String = new Path(folder, s"$copy/changes").toString
}

private[sources] object TableCopies {
  private val Copy = "copy-"
  private[tables] val Version = "version-"
  private val Lent = "lent-"

  /** Returns whether a file names the copy of a version. */
  def isNamedBy(name: String): Boolean = name.startsWith(Version)

  /** Older loans count as abandoned, because the reader's process may have ended. */
  private val LongestLoan = Duration.ofDays(1)

  /**
   * Gives a second folder access to the copy of a version. The copy stays in place, and is not deleted before the loan
   * is closed. Fails if the version's file no longer exists.
   *
   * @param version
   *   the name of the version's file
   */
  def lend(folder: Path, version: String, into: Path, hadoopConf: Configuration): Closeable = {
    val files = folder.getFileSystem(hadoopConf)
    val named = new TextFile(new Path(folder, version), hadoopConf)
    val copy = named.read()
    val loan = new Path(folder, s"$Lent${UUID.randomUUID}")
    def end(): Unit = {
      files.delete(loan, false)
      ()
    }
    new TextFile(loan, hadoopConf).write(copy)
    try {
      // The deletion of a version searches for loans after deleting this file.
      if (!named.exists) throw new FileNotFoundException(s"${new Path(folder, version)}")
      val place = files.makeQualified(new Path(folder, copy))
      new TextFile(new Path(into, version), hadoopConf).write(place.toString)
      () => end()
    } catch {
      case error: Throwable =>
        end()
        throw error
    }
  }
}
