// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import java.util.ServiceLoader

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.{
  BaseRelation, CreatableRelationProvider, DataSourceRegister, StreamSinkProvider
}
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.{DataFrame, SQLContext, SaveMode}

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** Creates the sink of `writeStream.format(format)`. */
abstract class ChangelogSinkProvider(format: String)
    extends StreamSinkProvider
    with CreatableRelationProvider
    with DataSourceRegister {

  protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink

  final override def shortName(): String = format

  final override def createSink(
      sqlContext: SQLContext,
      parameters: Map[String, String],
      partitionColumns: Seq[String],
      outputMode: OutputMode): Sink =
    sink(castToImpl(sqlContext.sparkSession), new SinkOptions(format, parameters))

  /** Rejects every batch query. */
  final override def createRelation(
      sqlContext: SQLContext,
      mode: SaveMode,
      parameters: Map[String, String],
      data: DataFrame): BaseRelation =
    throw analysis("CHANGELOG_SINK_NEEDS_STREAM", "sink" -> format)

  final override def supportsDataType(dt: DataType): Boolean = true
}

object ChangelogSinkProvider {

  /** Returns the formats of all changelog sinks. */
  def formats: Seq[String] =
    ServiceLoader
      .load(classOf[DataSourceRegister], classOf[ChangelogSinkProvider].getClassLoader)
      .asScala
      .collect { case provider: ChangelogSinkProvider => provider.shortName() }
      .toSeq
      .sorted
}
