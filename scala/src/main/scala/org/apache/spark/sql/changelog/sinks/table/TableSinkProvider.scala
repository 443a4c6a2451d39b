// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.sinks.{ChangelogSink, ChangelogSinkProvider, SinkOptions}

/** `writeStream.format("changelog-table")`: keeps a table current that supports MERGE. */
class TableSinkProvider extends ChangelogSinkProvider("changelog-table") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new TableSink(options)
}
