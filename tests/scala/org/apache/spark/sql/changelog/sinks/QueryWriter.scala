// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import java.nio.file.Path

import scala.io.Source

import org.apache.spark.sql.streaming.Trigger

import org.apache.spark.sql.changelog.lifetime.{ArrivingTable, OperatorQuery}
import org.apache.spark.sql.changelog.testing.ChildProcess

/**
 * Writes a query of [[OperatorQuery]] through a sink, in a process of its own that a test may kill.
 *
 * What to do comes by standard input, a line each: the session's settings, the tables' folder, the
 * query's name, its checkpoint, the sink's format and its options. It says `started` when the query
 * runs, and `finished` when it has read all files.
 */
object QueryWriter {
  def main(arguments: Array[String]): Unit = {
    val Seq(settings, feeds, name, checkpoint, format, options) =
      Source.stdin.getLines().toSeq: @unchecked
    val spark = ChildProcess.spark(settings)
    ArrivingTable.stream(spark, Path.of(feeds))
    val query = spark
      .sql(OperatorQuery.named(name).changes)
      .writeStream
      .format(format)
      .options(ChildProcess.settings(options))
      .option("checkpointLocation", checkpoint)
      .trigger(Trigger.AvailableNow())
      .start()
    println("started")
    query.awaitTermination()
    println("finished")
    spark.stop()
  }
}
