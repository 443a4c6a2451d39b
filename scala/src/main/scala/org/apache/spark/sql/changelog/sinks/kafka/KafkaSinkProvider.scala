// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.kafka

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.sinks.{ChangelogSink, ChangelogSinkProvider, SinkOptions}

/**
 * `writeStream.format("changelog-kafka")`: writes the newest row of each key, or the changes of
 * rows, to a topic.
 */
class KafkaSinkProvider extends ChangelogSinkProvider("changelog-kafka") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new KafkaSink(options)
}
