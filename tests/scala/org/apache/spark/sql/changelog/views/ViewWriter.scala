// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.nio.file.Path

import scala.io.Source

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.lifetime.ArrivingTable
import org.apache.spark.sql.changelog.testing.ChildProcess

/**
 * Makes views and keeps them current over files of changes, in a process of its own that a test may
 * kill, and with a catalog that outlives it.
 *
 * What to do comes by standard input: the session's settings, how (`refresh`, the first time `full`, or `run`),
 * the folder of the files, whether these are `changes`, or else the format of tables that hold all rows, and
 * then for each view its name and the statement that makes it, over tables as [[ArrivingTable]] names them.
 * It first tells where the progress of the views there are is noted, and their rows, `name` and JSON, then
 * `started`; after refreshes, between which views get another number of partitions, the same again, and
 * `finished`.
 */
object ViewWriter {

  def main(arguments: Array[String]): Unit = {
    val lines = Source.stdin.getLines()
    val spark = ChildProcess.spark(
      lines.next(),
      SparkSession.builder().master("local[2]").enableHiveSupport())
    val how = lines.next()
    val feeds = Path.of(lines.next())
    lines.next() match {
      case "changes" => nameChanges(spark, feeds)
      case format => nameRows(spark, feeds, format)
    }
    val views = lines.grouped(2).map(view => view.head -> view.last).toSeq
    tell(spark, views.map(_._1).filter(spark.catalog.tableExists(_)))
    println("started")
    views.foreach { case (name, statement) =>
      spark.sql(statement)
      if (how == "run") spark.sql(s"START MATERIALIZED VIEW $name")
    }
    if (how == "run") spark.streams.awaitAnyTermination()
    def refresh(more: String = ""): Unit =
      views.foreach { case (name, _) => spark.sql(s"REFRESH MATERIALIZED VIEW $name $more") }
    refresh(if (how == "full") "FULL" else "")
    views.foreach { case (name, _) => spread(spark, name) }
    refresh()
    tell(spark, views.map(_._1))
    println("finished")
    spark.stop()
  }

  private def nameChanges(spark: SparkSession, feeds: Path): Unit = {
    ArrivingTable.Names.foreach { name =>
      spark.sql(
        s"CREATE TABLE IF NOT EXISTS files_$name (${ArrivingTable.RawColumns}) USING json " +
          s"OPTIONS (maxFilesPerTrigger 1) LOCATION '${feeds.resolve(name)}'")
    }
    ArrivingTable.stream(spark, name => spark.readStream.table(s"files_$name"))
  }

  private def nameRows(spark: SparkSession, feeds: Path, format: String): Unit =
    ArrivingTable.Names.foreach { name =>
      spark.sql(
        if (format == "iceberg")
          s"CREATE VIEW IF NOT EXISTS $name AS SELECT * FROM ice.rows.$name"
        else
          s"CREATE TABLE IF NOT EXISTS $name (${ArrivingTable.Columns}) USING $format " +
            s"LOCATION '${feeds.resolve(s"rows/$name")}'")
    }

  /** Lets a view have its state in more partitions, or in fewer again. */
  private def spread(spark: SparkSession, view: String): Unit = {
    val before = new ViewCatalog(spark).get(view.split('.').toSeq).definition.partitions
    val partitions = if (before.contains("3")) 2 else 3
    spark.sql(s"ALTER MATERIALIZED VIEW $view SET PARTITIONS $partitions")
    ()
  }

  private def tell(spark: SparkSession, views: Seq[String]): Unit = views.foreach { name =>
    val parts = name.split('.').toSeq
    val view = new ViewCatalog(spark).get(parts)
    println(s"checkpoint ${parts.last} ${view.definition.checkpoint.toUri.getPath}")
    spark.table(name).toJSON.collect().foreach(row => println(s"${parts.last} $row"))
  }
}
