// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.nio.file.{Files, Path}

import scala.io.Source
import scala.util.control.NonFatal

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.Fence
import org.apache.spark.sql.changelog.testing.{ChildProcess, EndingFileSystem}

/**
 * Writes a view in a process of its own until a file is there.
 *
 * By standard input come the session's settings, the statement by which its catalog knows the view, how it is written,
 * and the file. It tells `held` when it writes, and `done` or a condition at the end.
 *
 *   - `statement`, `query`: holds the lease until the file is there
 *   - `refresh <effect>`: refreshes the view, and is held up before that effect until the file is there; without an
 *     effect before the refresh begins; with `file <n>` within the change of a file that follows n others
 */
object ViewHolder {

  def main(arguments: Array[String]): Unit = {
    val lines = Source.stdin.getLines()
    val spark = ChildProcess.spark(lines.next(), SparkSession.builder().master("local[1]"))
    spark.sql(lines.next())
    val how = lines.next()
    val file = Path.of(lines.next())
    def hold(): Unit = {
      println("held")
      while (!Files.exists(file)) Thread.sleep(20)
    }
    try {
      if (how.startsWith("refresh")) {
        spark.sql("SELECT * FROM v").collect()
        val effect = how.drop("refresh ".length)
        effect match {
          case "" => hold()
          case s"file $changes" => EndingFileSystem.holdUpAfter(changes.toInt)(hold())
          case _ =>
            Fence.onEffect = (name, isChecked) =>
              if (name == effect && !isChecked) {
                Fence.onEffect = (_, _) => ()
                hold()
              }
        }
        spark.sql("REFRESH MATERIALIZED VIEW v")
      } else if (how == "query") {
        spark.sql("START MATERIALIZED VIEW v")
        hold()
        spark.sql("STOP MATERIALIZED VIEW v")
      } else ViewLeases(spark, Seq("v"))(_ => hold())
      println("done")
    } catch {
      case NonFatal(error: SparkThrowable) => println(error.getCondition)
      case error: Throwable => println(error)
    }
    spark.stop()
  }
}
