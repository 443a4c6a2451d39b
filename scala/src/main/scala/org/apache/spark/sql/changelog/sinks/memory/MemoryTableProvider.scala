// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.memory

import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.{DataSourceRegister, StreamSinkProvider}
import org.apache.spark.sql.streaming.OutputMode

import org.apache.spark.sql.changelog.sinks.SinkOptions

/** `writeStream.format("changelog-memory")`: keeps the rows of the query as a temporary view. */
class MemoryTableProvider extends StreamSinkProvider with DataSourceRegister {
  override def shortName(): String = "changelog-memory"

  override def createSink(
      sqlContext: SQLContext,
      parameters: Map[String, String],
      partitionColumns: Seq[String],
      outputMode: OutputMode): Sink = new MemoryTableSink(
    castToImpl(sqlContext.sparkSession),
    new SinkOptions(shortName(), parameters))
}
