// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.files

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.connector.read.streaming.{Offset => AnyOffset, ReadLimit}
import org.apache.spark.sql.execution.streaming.runtime.LongOffset
import org.apache.spark.sql.execution.streaming.{Offset, Source}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.sinks.{ChangelogSink, ChangelogSinkProvider, SinkOptions}
import org.apache.spark.sql.changelog.sources.tables.TableRows
import org.apache.spark.sql.changelog.sources.{LatestOffsetProvider, LatestOffsetSource}
import org.apache.spark.sql.changelog.views.{
  MaterializedView, SnapshotStorage, ViewCatalog, ViewStorage
}

/**
 * VersionSource: a stream of the versions of a view of files. An offset is the number of a version.
 *
 * @param from
 *   the first version, if the stream returns the changes of each version. If None, the stream begins with all rows, and
 *   then returns the net difference of each batch's first and last version.
 */
class VersionSource(session: SparkSession, name: String, from: Option[Long])
    extends LatestOffsetSource {

  /** The maximum number of versions per batch. */
  private val AtOnce = 20

  /** The last version to read, if fixed at the start of the query. */
  private var decided: Option[Long] = None

  override def schema: StructType = versions(view).changes(1, 0).schema

  override def prepareForTriggerAvailableNow(): Unit = decided = Some(shown)

  override def latestOffset(start: AnyOffset, limit: ReadLimit): AnyOffset = {
    val last = decided.getOrElse(shown)
    // With `from`, the plan of the batch has a separate difference for each version.
    Option(start).map(_.json.toLong + 1).orElse(from) match {
      case None => LongOffset(last)
      case Some(next) if next <= last && from.isEmpty => LongOffset(last)
      case Some(next) if next <= last => LongOffset(math.min(last, next + AtOnce - 1))
      case _ => start
    }
  }

  override def deserializeOffset(json: String): AnyOffset = LongOffset(json.toLong)

  override def getBatch(start: Option[Offset], end: Offset): DataFrame = {
    val last = end.json.toLong
    val now = versions(view)
    val rows = (start.map(_.json.toLong), from) match {
      case (Some(done), None) => now.difference(done, last)
      case (Some(done), Some(_)) => now.changes(done + 1, last)
      case (None, Some(first)) => now.changes(first, last)
      case (None, None) => now.rows(last)
    }
    val plan = rows.queryExecution.analyzed
    Dataset.ofRows(session, TableRows(toAttributes(rows.schema), () => plan))
  }

  override def stop(): Unit = ()

  override def toString: String = s"changes of $name"

  private def shown: Long = ViewStorage(session, view).version(view)

  private def view: MaterializedView =
    new ViewCatalog(session).get(CatalystSqlParser.parseMultipartIdentifier(name))

  private def versions(view: MaterializedView) = new SnapshotVersions(session, view)
}

/**
 * VersionSourceProvider: creates the source for the view of option `view`, from the version of option `fromVersion`.
 */
class VersionSourceProvider extends LatestOffsetProvider("changelog-view") {

  override protected def schemaOf(
      session: SparkSession,
      options: Map[String, String]): StructType = of(session, options).schema

  override protected def source(
      session: SparkSession,
      options: Map[String, String],
      folder: Path): Source = of(session, options)

  private def of(session: SparkSession, options: Map[String, String]): VersionSource =
    new VersionSource(session, options("view"), options.get("fromVersion").map(_.toLong))
}

/**
 * FilesSinkProvider: the sink of views stored as files. The sink has no short name, because readers need the view to
 * find a consistent snapshot.
 */
class FilesSinkProvider extends ChangelogSinkProvider("changelog-files") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new FilesSink(options, (session, path) => options.get("view").foreach(show(session, _, path)))

  private def show(session: SparkSession, name: String, path: Path): Unit = {
    // The snapshot lies in the folder `rows` of the generation.
    val view = SnapshotStorage.alone(path.getParent.getParent) {
      val view = new ViewCatalog(session).get(CatalystSqlParser.parseMultipartIdentifier(name))
      ViewStorage(session, view) match {
        case storage: SnapshotStorage => storage.show(view, path)
        case other => throw new IllegalStateException(s"not of files: $other")
      }
      view
    }
    new Snapshots(session, path.getParent).retire(view.definition.retention)
  }
}
