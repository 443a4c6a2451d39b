// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import java.nio.file.{Files, Path}

import scala.io.Source

import org.apache.spark.sql.changelog.testing.{CheckpointedQuery, ChildProcess}

/**
 * Runs a query in a process of its own, beside another one on the same checkpoint.
 *
 * By standard input it is told the session's settings, the query's folder, and where to write what
 * it has emitted, a file per batch.
 */
object CheckpointDriver {
  def main(arguments: Array[String]): Unit = {
    val lines = Source.stdin.getLines()
    val settings = lines.next()
    val (folder, output) = (Path.of(lines.next()), Path.of(lines.next()))
    val spark = ChildProcess.spark(settings)
    println("started")
    val query = new CheckpointedQuery(spark, folder.toFile)
    try query.run()
    catch {
      case error: Exception =>
        Files.writeString(output.resolve("error"), error.toString)
    }
    query.emitted.foreach { case (batch, rows) =>
      Files.writeString(output.resolve(batch.toString), rows.mkString("\n"))
    }
    spark.stop()
  }
}
