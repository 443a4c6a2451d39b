// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.sinks.{ChangelogSink, ChangelogSinkProvider, SinkOptions}

/** `writeStream.format("changelog-jdbc")`: keeps a table of a database current. */
class JdbcSinkProvider extends ChangelogSinkProvider("changelog-jdbc") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new JdbcSink(options)
}
