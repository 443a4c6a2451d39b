// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import scala.io.Source

import org.apache.spark.sql.streaming.Trigger

import org.apache.spark.sql.changelog.testing.{ChangeFiles, ChildProcess}

/**
 * Keeps queries current over files of changes, in a process of its own that a test may kill.
 *
 * What to do comes by standard input: the session's settings on a line, then five lines for each
 * query. It says `started` when the queries run, and `finished` when they have read all files.
 */
object SinkWriter {
  def main(arguments: Array[String]): Unit = {
    val lines = Source.stdin.getLines()
    val spark = ChildProcess.spark(lines.next())
    val queries =
      lines.grouped(5).toSeq.map { query =>
        val Seq(sql, folder, checkpoint, format, options) = query: @unchecked
        val raw = spark.readStream
          .schema(s"${ChangeFiles.Columns}, op STRING")
          .option("maxFilesPerTrigger", 1)
          .json(folder)
        raw.createOrReplaceTempView("changes")
        val rides = spark.sql("SELECT * FROM from_changelog(TABLE(changes), 'op', 'id')")
        rides.createOrReplaceTempView("rides")
        spark
          .sql(s"SELECT * FROM to_changelog(TABLE($sql))")
          .writeStream
          .format(format)
          .options(ChildProcess.settings(options))
          .option("checkpointLocation", checkpoint)
          .trigger(Trigger.AvailableNow())
          .start()
      }
    println("started")
    queries.foreach(_.awaitTermination())
    println("finished")
    spark.stop()
  }
}
