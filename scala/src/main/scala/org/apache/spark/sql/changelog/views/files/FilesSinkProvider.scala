// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.files

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.{DataSourceRegister, StreamSinkProvider}
import org.apache.spark.sql.streaming.OutputMode

import org.apache.spark.sql.changelog.sinks.SinkOptions
import org.apache.spark.sql.changelog.views.{SnapshotStorage, ViewCatalog}

/**
 * The sink of views that are stored as files. It is not asked for by a name of its own: without the
 * view that shows the newest snapshot nobody could read it consistently.
 */
class FilesSinkProvider extends StreamSinkProvider with DataSourceRegister {
  override def shortName(): String = "changelog-files"

  override def createSink(
      sqlContext: SQLContext,
      parameters: Map[String, String],
      partitionColumns: Seq[String],
      outputMode: OutputMode): Sink = {
    val options = new SinkOptions(shortName(), parameters)
    new FilesSink(options, (session, path) => options.get("view").foreach(show(session, _, path)))
  }

  private def show(session: SparkSession, name: String, path: Path): Unit = {
    val parts = CatalystSqlParser.parseMultipartIdentifier(name)
    val view = new ViewCatalog(session).get(parts)
    new SnapshotStorage(session).show(view, path)
    new Snapshots(session, path.getParent).retire(view.definition.retention)
  }
}
