// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.snapshots

import java.util.UUID

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.connector.read.streaming.{Offset => AnyOffset, ReadLimit}
import org.apache.spark.sql.execution.streaming.{Offset, Source}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame => AnyDataFrame}

import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.plans.GoneRows
import org.apache.spark.sql.changelog.sources.tables.{PinnedTables, TableRows}
import org.apache.spark.sql.changelog.sources.{LatestOffsetProvider, LatestOffsetSource}

/**
 * Emits all rows of a snapshot in the first batch of a query, and no rows later.
 *
 * {{{
 *   before the first batch       the snapshot is pinned: by versions of tables, or by a copy made now
 *   first batch, and its rerun   the rows of the pinned snapshot
 *   after the first batch        the copy is deleted
 * }}}
 *
 * @param folder
 *   the folder of a copy, below the checkpoint
 */
private[snapshots] class InitialSnapshotSource(
    session: SparkSession,
    rows: LogicalPlan,
    override val schema: StructType,
    folder: Path)
    extends LatestOffsetSource {
  import InitialSnapshotSource._

  private lazy val files: FileSystem =
    folder.getFileSystem(session.sessionState.newHadoopConf())

  private lazy val decided: SnapshotOffset = decide()

  private var isForgotten = false

  override def prepareForTriggerAvailableNow(): Unit = ()

  override def latestOffset(start: AnyOffset, limit: ReadLimit): AnyOffset =
    if (start == null) decided else SnapshotOffset.of(start)

  override def deserializeOffset(json: String): AnyOffset = SnapshotOffset.parse(json)

  override def getBatch(start: Option[Offset], end: Offset): AnyDataFrame = {
    val columns = toAttributes(schema)
    val read = start match {
      case None => () => rowsAt(SnapshotOffset.of(end))
      case Some(_) => () => LocalRelation(columns)
    }
    Dataset.ofRows(session, TableRows(columns, read))
  }

  override def commit(end: Offset): Unit = if (!isForgotten) {
    copies.foreach(files.delete(_, true))
    isForgotten = true
  }

  override def stop(): Unit = ()

  override def toString: String = InitialSnapshotProvider.Name

  private def decide(): SnapshotOffset = {
    // Left by a start that ended before its batch.
    copies.foreach(files.delete(_, true))
    PinnedTables.versions(session, rows) match {
      case Some(versions) => SnapshotOffset(None, versions)
      case None =>
        val copy = s"$Prefix${UUID.randomUUID}"
        Dataset.ofRows(session, rows).toDF(names: _*).write.parquet(path(copy).toString)
        SnapshotOffset(Some(copy), Nil)
    }
  }

  private def rowsAt(moment: SnapshotOffset): LogicalPlan = moment.copy match {
    case None => PinnedTables.at(session, rows, moment.tables)
    case Some(copy) if files.exists(path(copy)) =>
      val stored = StructType(schema.zip(names).map { case (field, name) =>
        field.copy(name = name)
      })
      session.read.schema(stored).parquet(path(copy).toString).queryExecution.analyzed
    case Some(copy) =>
      GoneRows(
        toAttributes(schema),
        () => analysis("CHANGELOG_SNAPSHOT_GONE", "path" -> path(copy).toString))
  }

  /**
   * Numbers the columns of a copy, because names may have characters that files do not support.
   */
  private def names: Seq[String] = schema.indices.map(place => s"c$place")

  private def copies: Seq[Path] =
    if (!files.exists(folder)) Nil
    else files.listStatus(folder).toSeq.map(_.getPath).filter(_.getName.startsWith(Prefix))

  private def path(copy: String): Path = new Path(folder, copy)
}

private object InitialSnapshotSource {
  private val Prefix = "rows-"
}

/**
 * The format registered under the name of [[InitialSnapshotData]]. Creating a source by the
 * format fails, because options cannot express the plan of the snapshot.
 */
class InitialSnapshotProvider extends LatestOffsetProvider(InitialSnapshotProvider.Name) {

  override protected def schemaOf(
      session: SparkSession,
      options: Map[String, String]): StructType = refuse()

  override protected def source(
      session: SparkSession,
      options: Map[String, String],
      folder: Path): Source = refuse()

  private def refuse(): Nothing = throw ChangelogErrors.argumentInvalid(
    shortName(),
    "table",
    "NULL",
    "a snapshot belongs to a feed, as in from_changelog(TABLE(feed), snapshot => TABLE(t), ...)")
}

private[snapshots] object InitialSnapshotProvider {
  val Name = "changelog-initial-snapshot"
}
