// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.files

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.sinks.{ChangelogSink, ChangelogSinkProvider, SinkOptions}
import org.apache.spark.sql.changelog.views.{SnapshotStorage, ViewCatalog}

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
