// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.kafka

import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.{DataSourceRegister, StreamSinkProvider}
import org.apache.spark.sql.streaming.OutputMode

import org.apache.spark.sql.changelog.sinks.SinkOptions

/** `writeStream.format("changelog-kafka")`: writes the newest row of each key, or the changes of rows, to a topic. */
class KafkaSinkProvider extends StreamSinkProvider with DataSourceRegister {
  override def shortName(): String = "changelog-kafka"

  override def createSink(
      sqlContext: SQLContext,
      parameters: Map[String, String],
      partitionColumns: Seq[String],
      outputMode: OutputMode): Sink = new KafkaSink(new SinkOptions(shortName(), parameters))
}
