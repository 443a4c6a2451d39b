// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.{DataSourceRegister, StreamSinkProvider}
import org.apache.spark.sql.streaming.OutputMode

import org.apache.spark.sql.changelog.sinks.SinkOptions

/** `writeStream.format("changelog-jdbc")`: keeps a table of a database current. */
class JdbcSinkProvider extends StreamSinkProvider with DataSourceRegister {
  override def shortName(): String = "changelog-jdbc"

  override def createSink(
      sqlContext: SQLContext,
      parameters: Map[String, String],
      partitionColumns: Seq[String],
      outputMode: OutputMode): Sink = new JdbcSink(new SinkOptions(shortName(), parameters))
}
