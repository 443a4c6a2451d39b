// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.{DataSourceRegister, StreamSinkProvider}
import org.apache.spark.sql.streaming.OutputMode

import org.apache.spark.sql.changelog.sinks.SinkOptions

/** `writeStream.format("changelog-table")`: keeps a table that knows MERGE current. */
class TableSinkProvider extends StreamSinkProvider with DataSourceRegister {
  override def shortName(): String = "changelog-table"

  override def createSink(
      sqlContext: SQLContext,
      parameters: Map[String, String],
      partitionColumns: Seq[String],
      outputMode: OutputMode): Sink = new TableSink(new SinkOptions(shortName(), parameters))
}
