// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.fanout

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.sinks.{ChangelogSink, ChangelogSinkProvider, SinkOptions}

/** `writeStream.format("changelog-fanout")`: writes each batch to several sinks. */
class FanOutSinkProvider extends ChangelogSinkProvider("changelog-fanout") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new FanOutSink(session, options)
}
