// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.files

import java.io.FileNotFoundException
import java.sql.Timestamp

import scala.annotation.tailrec

import org.apache.commons.codec.digest.DigestUtils
import org.apache.hadoop.fs.{FileSystem, Path}
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.streaming.sinks.FileStreamSink
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.types.{DataType, StringType, StructType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.checkpoint.{Fence, TextFile}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.sources.tables.{RowDelta, TableVersion}
import org.apache.spark.sql.changelog.views.MaterializedView

/**
 * SnapshotVersions: the versions of a view, each with rows and a definition. The changes of a version are the rows that
 * differ from the previous version.
 *
 * {{{
 *   <home>/versions/7.json     location and columns of the rows, the view's definition, and the time of creation
 * }}}
 *
 * Only one process creates the file of a number, and the last file is the current version. The catalog has a copy. A
 * number above the catalog's number means that a process ended before the update of the catalog.
 */
class SnapshotVersions(session: SparkSession, view: MaterializedView) {
  import SnapshotVersions._

  private implicit val formats: Formats = Serialization.formats(NoTypeHints)
  private val folder = new Path(view.definition.home, Folder)
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files: FileSystem = folder.getFileSystem(hadoopConf)

  /** Returns the last version with its number. */
  def last: Option[(Long, Version)] = newestFirst.headOption

  private def newestFirst: LazyList[(Long, Version)] =
    listed.reverse.to(LazyList).flatMap { case (number, _) => read(number).map(number -> _) }

  /** Adds a version, unless the last version is equal. */
  @tailrec
  final def add(version: Version): Unit = {
    val before = last
    val digest = before.map(_._2).filter(_.path == version.path).fold(digestOf(version))(_.digest)
    val dated = version.copy(at = System.currentTimeMillis(), digest = digest)
    if (!before.exists(_._2.copy(at = dated.at) == dated)) {
      val number = before.fold(0L)(_._1 + 1)
      Fence.check("record")
      if (file(number).create(Serialization.write(dated))) forget(number)
      // Another process has added a version, as only the lease holder before this process may do.
      else add(version)
    }
  }

  /** Returns the folder of the last version's rows if another writer has changed the files that readers see. */
  def writtenByOthers: Option[String] = last
    .map(_._2)
    .filter(version =>
      version.digest.nonEmpty && digestOf(version).exists(!version.digest.contains(_)))
    .map(_.path)

  /** Returns a digest of the names and sizes of the files that readers of a version see, if the folder exists. */
  private def digestOf(version: Version): Option[String] =
    try {
      val seen = files.listStatus(new Path(version.path)).toSeq.filter { status =>
        val name = status.getPath.getName
        // The log of a streaming query decides which files readers see.
        !name.startsWith("_") && !name.startsWith(".") || name == FileStreamSink.metadataDir
      }
      val sizes = seen.map(status =>
        s"${status.getPath.getName} ${if (status.isFile) status.getLen else 0}")
      Some(DigestUtils.sha256Hex(sizes.sorted.mkString("\n")))
    } catch { case _: FileNotFoundException => None }

  /** Returns the generations visible at some time after `time`, in milliseconds. */
  def shownSince(time: Long): Set[Path] = {
    val (later, earlier) = newestFirst.map(_._2).span(_.at > time)
    (later ++ earlier.take(1)).map(version => new Path(version.path).getParent.getParent).toSet
  }

  /** Returns the inserted and deleted rows of each version in a range. */
  def changes(from: Long, to: Long): DataFrame = {
    val numbers = math.max(from, 1L) to to
    val there = numbers
      .flatMap(number => Seq(number - 1, number))
      .distinct
      .flatMap(number => read(number).filter(isThere).map(number -> _))
      .toMap
    def isKnown(number: Long) = there.contains(number - 1) && there.contains(number)
    numbers.find(!isKnown(_)).foreach { gone =>
      val oldest = (gone to to).find(isKnown).filter(first => (first to to).forall(isKnown))
      throw analysis(
        "CHANGELOG_VIEW_VERSION_GONE",
        "view" -> view.name,
        "version" -> from,
        "oldest" -> oldest,
        "newest" -> to)
    }
    numbers
      .map(number => step(there(number - 1), number, there(number)))
      .foldLeft(none)(_.union(_))
  }

  /** Returns all rows of a version, as inserts. */
  def rows(number: Long): DataFrame = {
    val version = known(number)
    marked(of(load(version), "insert"), number, version.at)
  }

  /** Returns the rows that differ between two versions, without the versions in between. */
  def difference(before: Long, number: Long): DataFrame =
    if (before >= number) none
    else step(known(before), number, known(number), RowDelta.NetOfRead)

  private def known(number: Long): Version = read(number).filter(isThere).getOrElse {
    throw analysis(
      "CHANGELOG_VIEW_VERSION_GONE",
      "view" -> view.name,
      "version" -> number,
      "oldest" -> None,
      "newest" -> number)
  }

  private def step(
      before: Version,
      number: Long,
      version: Version,
      net: String = RowDelta.Net): DataFrame =
    if (before.path == version.path) none
    else marked(RowDelta(load(before), load(version), net), number, version.at)

  private def none: DataFrame = {
    val rows = session.createDataFrame(java.util.List.of[Row](), view.schema)
    marked(of(rows, "insert"), 0, 0)
  }

  private def of(rows: DataFrame, kind: String): DataFrame =
    rows.withColumn(RowKind.ChangeTypeColumnName, lit(kind).cast(StringType))

  private def load(version: Version): DataFrame =
    session.read.schema(view.schema).format(view.fileFormat).load(version.path)

  /**
   * Returns whether a version can be compared in the view's columns. Columns missing in the version are NULL there.
   * Columns of another type cannot be compared.
   */
  private def isThere(version: Version): Boolean = {
    val known = view.schema.map(field => field.name -> field.dataType).toMap
    def isSame(one: DataType, other: DataType) =
      TableVersion.ofRows(one) == TableVersion.ofRows(other)
    version.columns.forall(field => known.get(field.name).forall(isSame(_, field.dataType))) &&
    files.exists(new Path(version.path, "_SUCCESS"))
  }

  /** Deletes versions without rows. Looks only at versions replaced before the retention. */
  private def forget(newest: Long): Unit = {
    val oldest = System.currentTimeMillis() - view.definition.retention
    val versions = listed
    val replaced = versions.zip(versions.drop(1)).collect {
      case ((number, _), (next, time)) if next < newest && time < oldest => number
    }
    replaced
      .filterNot(read(_).exists(version => files.exists(new Path(version.path))))
      .foreach(number => files.delete(path(number), false))
  }

  /** Returns the numbers of all versions in order, each with the time of its file, in milliseconds. */
  private def listed: Seq[(Long, Long)] =
    if (!files.exists(folder)) Nil
    else
      (for {
        status <- files.listStatus(folder).toSeq
        number <- status.getPath.getName.stripSuffix(".json").toLongOption
      } yield number -> status.getModificationTime).sorted

  private def read(number: Long): Option[Version] =
    file(number).find().map(Serialization.read[Version](_))

  private def file(number: Long) = new TextFile(path(number), hadoopConf)

  private def path(number: Long) = new Path(folder, s"$number.json")
}

object SnapshotVersions {

  /** The name of the folder, below the home of a view. */
  val Folder = "versions"

  val CommitVersion = "_commit_version"
  val CommitTimestamp = "_commit_timestamp"

  /** Adds the number and the time of a version to its changes. */
  def marked(changes: DataFrame, number: Long, at: Long): DataFrame =
    changes
      .withColumn(CommitVersion, lit(number))
      .withColumn(CommitTimestamp, lit(new Timestamp(at)))

  /**
   * A version of a view.
   *
   * @param properties
   *   the view's definition, as table properties
   * @param digest
   *   identifies the files of the rows. Versions of earlier releases have none.
   */
  case class Version(
      path: String,
      schema: String,
      properties: Map[String, String],
      at: Long,
      digest: Option[String] = None) {
    def columns: StructType = DataType.fromJson(schema).asInstanceOf[StructType]
  }
}
