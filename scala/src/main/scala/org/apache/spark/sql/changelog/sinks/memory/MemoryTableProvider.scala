// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.memory

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.sinks.{ChangelogSink, ChangelogSinkProvider, SinkOptions}

/** `writeStream.format("changelog-memory")`: keeps the rows of the query as a temporary view. */
class MemoryTableProvider extends ChangelogSinkProvider("changelog-memory") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new MemoryTableSink(session, options)
}
