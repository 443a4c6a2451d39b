// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import java.util.UUID

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.types.{StringType, StructType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.checkpoint.TextFile

/**
 * Copies of a table's rows, next to a checkpoint.
 *
 * {{{
 *   <folder>/version-7           names the copy of version 7
 *   <folder>/copy-<id>/rows      all rows
 *   <folder>/copy-<id>/changes   what differs from the version before
 * }}}
 * Names of columns are left out: those of databases differ in case only, and have signs that files
 * don't take.
 */
private[tables] class TableCopies(session: SparkSession, folder: Path, table: StructType) {
  import TableCopies._

  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files: FileSystem = folder.getFileSystem(hadoopConf)

  /** What the columns are called in a copy. */
  val columns: Seq[String] = table.indices.map(place => s"c$place")

  private val schema: StructType = {
    val fields =
      table.asNullable.zip(columns).map { case (field, name) => field.copy(name = name) }
    StructType(fields.toSeq)
  }

  /** Makes a copy, and tells what it is called. */
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

  /** From now on a version consists of a copy. */
  def name(version: Long, copy: String): Unit = file(version).write(copy)

  /** The copy of a version. */
  def named(version: Long): String = file(version).read()

  def delete(copy: String): Unit = {
    files.delete(new Path(folder, copy), true)
    ()
  }

  /** Deletes what a refresh has left that ended before its version was decided on. */
  def deleteUnnamed(): Unit = {
    val named = versions.map(this.named).toSet
    listed(Copy).filterNot(named).foreach(delete)
  }

  def deleteBefore(version: Long): Unit = {
    val (old, kept) = versions.partition(_ < version)
    val named = kept.map(this.named).toSet
    old.foreach { version =>
      Seq(this.named(version)).filterNot(named).foreach(delete)
      files.delete(path(version), false)
    }
  }

  private def versions: Seq[Long] =
    listed(Version).flatMap(_.drop(Version.length).toLongOption)

  private def listed(prefix: String): Seq[String] =
    if (!files.exists(folder)) Nil
    else files.listStatus(folder).toSeq.map(_.getPath.getName).filter(_.startsWith(prefix))

  private def file(version: Long) = new TextFile(path(version), hadoopConf)

  private def path(version: Long) = new Path(folder, s"$Version$version")

  private def rowsOf(copy: String): String = new Path(folder, s"$copy/rows").toString

  private def changesOf(copy: String): String = new Path(folder, s"$copy/changes").toString
}

private object TableCopies {
  private val Copy = "copy-"
  val Version = "version-"
}
