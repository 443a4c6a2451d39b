// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.files

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.streaming.{Offset => AnyOffset, ReadLimit}
import org.apache.spark.sql.execution.streaming.runtime.LongOffset
import org.apache.spark.sql.execution.streaming.{Offset, Source}
import org.apache.spark.sql.sources.StreamSourceProvider
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.sinks.{ChangelogSink, ChangelogSinkProvider, SinkOptions}
import org.apache.spark.sql.changelog.sources.LatestOffsetSource
import org.apache.spark.sql.changelog.views.{KeptView, SnapshotStorage, ViewCatalog}

/**
 * The versions of a view that is stored as files, as a stream. An offset is the number of a version.
 *
 * @param from
 *   the version from which the stream has the changes of each version; none if it begins with all rows, and goes on
 *   with net differences between the versions at which batches begin and end
 */
class VersionSource(session: SparkSession, name: String, from: Option[Long])
    extends LatestOffsetSource {
  import VersionSource.AtOnce

  /** The last version to read, if that was decided when the query started. */
  private var decided: Option[Long] = None

  override def schema: StructType = versions(view).changes(1, 0).schema

  override def prepareForTriggerAvailableNow(): Unit = decided = Some(shown)

  override def latestOffset(start: AnyOffset, limit: ReadLimit): AnyOffset = {
    val last = decided.getOrElse(shown)
    // with `from`, each version is a difference of its own in the plan of the batch
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
    session.internalCreateDataFrame(rows.queryExecution.toRdd, rows.schema, isStreaming = true)
  }

  override def stop(): Unit = ()

  override def toString: String = s"changes of $name"

  private def shown: Long = new SnapshotStorage(session).version(view)

  private def view: KeptView =
    new ViewCatalog(session).get(CatalystSqlParser.parseMultipartIdentifier(name))

  private def versions(view: KeptView) = new SnapshotVersions(session, view)
}

private object VersionSource {

  /** The changes of how many versions one batch reads. */
  val AtOnce = 20
}

/** Makes the source for the view of option `view`, from the version of option `fromVersion`. */
class VersionSourceProvider extends StreamSourceProvider {
  override def sourceSchema(
      sqlContext: SQLContext,
      schema: Option[StructType],
      providerName: String,
      parameters: Map[String, String]): (String, StructType) =
    ("changelog-view", source(sqlContext, parameters).schema)

  override def createSource(
      sqlContext: SQLContext,
      metadataPath: String,
      schema: Option[StructType],
      providerName: String,
      parameters: Map[String, String]): Source = source(sqlContext, parameters)

  private def source(sqlContext: SQLContext, parameters: Map[String, String]): VersionSource =
    new VersionSource(
      sqlContext.sparkSession.asInstanceOf[SparkSession],
      parameters("view"),
      parameters.get("fromVersion").map(_.toLong))
}

/**
 * The sink of views that are stored as files. It is not asked for by a name of its own: without the
 * view that shows the newest snapshot nobody could read it consistently.
 */
class FilesSinkProvider extends ChangelogSinkProvider("changelog-files") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new FilesSink(options, (session, path) => options.get("view").foreach(show(session, _, path)))

  private def show(session: SparkSession, name: String, path: Path): Unit = {
    val parts = CatalystSqlParser.parseMultipartIdentifier(name)
    val view = SnapshotStorage.alone {
      val view = new ViewCatalog(session).get(parts)
      new SnapshotStorage(session).show(view, path)
      view
    }
    new Snapshots(session, path.getParent).retire(view.definition.retention)
  }
}
