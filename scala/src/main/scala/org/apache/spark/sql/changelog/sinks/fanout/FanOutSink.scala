// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.fanout

import scala.util.Try

import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.DataSource
import org.apache.spark.sql.sources.StreamSinkProvider
import org.apache.spark.sql.streaming.OutputMode

import org.apache.spark.sql.changelog.checkpoint.QueryOrigin
import org.apache.spark.sql.changelog.sinks.{
  ChangelogBatch, ChangelogSink, ChangelogSinkProvider, SinkInput, SinkOptions
}

/**
 * Writes each batch to several sinks, so every target holds the same version of the query.
 *
 * {{{
 *   .option("sinks", "totals, events")
 *   .option("totals.format", "changelog-jdbc").option("totals.url", ...)
 *   .option("events.format", "changelog-kafka").option("events.topic", ...)
 * }}}
 *
 * The query computes a batch once. The batch is done when every sink has written it. If a sink
 * fails, every sink receives the batch again. Sinks with the batch already written skip the
 * repetition.
 */
class FanOutSink(session: SparkSession, options: SinkOptions)
    extends ChangelogSink(options.format) {
  private val names = options
    .required("sinks", "the names of the sinks are needed, with commas between them")
    .split(',')
    .map(_.trim)
    .toSeq

  private val sinks: Seq[ChangelogSink] = names.map { name =>
    val wanted = options.required(s"$name.format", s"the format of the sink $name is needed")
    val provider = Try(DataSource.lookupDataSource(wanted, session.sessionState.conf)).toOption
    val made = provider.map(_.getDeclaredConstructor().newInstance()).collect {
      case sinks: StreamSinkProvider =>
        val own = CaseInsensitiveMap(options.ofSink(name))
        sinks.createSink(session.sqlContext, own, Nil, OutputMode.Append())
    }
    made.collect { case sink: ChangelogSink => sink }.getOrElse {
      val formats = ChangelogSinkProvider.formats.filter(_ != format).mkString(", ")
      throw options.invalid(s"$name.format", s"one of $formats is expected")
    }
  }

  override protected def check(input: SinkInput): Unit =
    sinks.foreach(sink => sink.accept(input.copy(sink = sink.format)))

  override def checkOrigins(session: SparkSession, origins: Seq[QueryOrigin]): Unit =
    sinks.foreach(_.checkOrigins(session, origins))

  override def write(batch: ChangelogBatch): Unit = {
    batch.changes.persist()
    try {
      sinks.foreach(sink => sink.write(batch.copy(input = batch.input.copy(sink = sink.format))))
    } finally batch.changes.unpersist()
  }
}

/** `writeStream.format("changelog-fanout")`: writes each batch to several sinks. */
class FanOutSinkProvider extends ChangelogSinkProvider("changelog-fanout") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new FanOutSink(session, options)
}
