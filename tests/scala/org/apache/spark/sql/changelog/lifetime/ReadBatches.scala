// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import java.nio.file.{Files, Path}
import java.sql.Timestamp

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.FileStreamSourceLog
import org.apache.spark.sql.types.StructType

/**
 * What batch Spark gives for each batch of a query over [[ArrivingTable]]s. Which files a batch has
 * read, and when, is seen in the query's checkpoint.
 */
class ReadBatches(
    session: SparkSession,
    query: OperatorQuery,
    checkpoint: Path,
    tables: Map[String, ArrivingTable]) {
  import ReadBatches._

  private val times = mutable.Map.empty[(String, String), Long]
  private val files = mutable.ArrayBuffer.empty[Map[String, Seq[Int]]]

  /** How many batches were committed. */
  def numCommitted: Int = numbers(checkpoint.resolve("commits")).size

  /** The last batch that was committed. */
  def lastCommitted: Option[Long] = numbers(checkpoint.resolve("commits")).maxOption

  /** The last batch that was begun, of which it is known what it reads. */
  def lastBegun: Option[Long] = numbers(checkpoint.resolve("offsets")).maxOption

  /** How many files of each table the last batch had read that was asked for. */
  def read: Map[String, Int] = files.lastOption.fold(Map.empty[String, Int])(numbersIn)

  /**
   * The rows after a batch that was begun; none if one source of the query has read a file that another
   * one over the same table has not: no table is like that.
   */
  def expected(batch: Long): Option[Seq[Row]] = {
    note(batch)
    val read = files(batch.toInt)
    if (read.values.exists(_.distinct.size > 1)) None else Some(rows(batch, numbersIn(read)))
  }

  /** The columns of those rows. */
  def schema: StructType = {
    nameTables(tables.map { case (name, _) => name -> 0 }, time = 0)
    session.sql(query.sql).schema
  }

  private def numbersIn(read: Map[String, Seq[Int]]): Map[String, Int] =
    tables.keys.map(table => table -> read.get(table).fold(0)(_.min)).toMap

  /** Notes what batches up to this one have read, and when. */
  private def note(last: Long): Unit = if (last >= files.size) {
    val arrivals = sourceFiles()
    (files.size.toLong to last).foreach { batch =>
      val ends = offsets(batch).drop(2).map { offset =>
        Offset.findFirstMatchIn(offset).fold(-1L)(_.group(1).toLong)
      }
      val known = arrivals.filter(file => file.offset <= ends(file.source))
      val bySource =
        arrivals.map(file => (file.table, file.source)).distinct.map { case (table, source) =>
          table -> known.filter(_.source == source).map(_.path).distinct.size
        }
      files += bySource.groupMap(_._1)(_._2)
      known.foreach { file =>
        times.getOrElseUpdate((file.table, file.path), metadata(batch, Time))
      }
    }
  }

  private def rows(batch: Long, files: Map[String, Int]): Seq[Row] = {
    val time = metadata(batch, Time)
    val watermark = metadata(batch, Watermark)
    nameTables(files, time)
    // as a condition of the query, Spark would ask it of rows before it has made sessions of them
    val rows =
      session.sql(query.sql.replace("now()", s"timestamp_millis(${time}L)")).collect().toSeq
    query.passed.fold(rows) { time =>
      rows.filter(_.getAs[Timestamp](time).getTime <= watermark)
    }
  }

  private def nameTables(files: Map[String, Int], time: Long): Unit =
    tables.foreach { case (name, table) =>
      val since = query.ttl.filter(_ => name == "t").map(time - _)
      table.read(session, files(name), timesOf(name), since)
    }

  /** When each file of a table was read first, in ms. */
  private def timesOf(table: String): Seq[Long] =
    times.toSeq.collect { case ((`table`, path), time) => path -> time }.sorted.map(_._2)

  private def offsets(batch: Long): Seq[String] =
    Files.readAllLines(checkpoint.resolve(s"offsets/$batch")).asScala.toSeq

  private def metadata(batch: Long, value: scala.util.matching.Regex): Long =
    value.findFirstMatchIn(offsets(batch)(1)).get.group(1).toLong

  /** The files that sources have noted. */
  private def sourceFiles(): Seq[SourceFile] =
    numbers(checkpoint.resolve("sources")).flatMap { source =>
      val path = checkpoint.resolve(s"sources/$source").toString
      new FileStreamSourceLog(FileStreamSourceLog.VERSION, session, path).allFiles().map { file =>
        val parts = file.path.split('/')
        SourceFile(source.toInt, parts(parts.length - 2), parts.last, file.batchId)
      }
    }
}

private object ReadBatches {
  private case class SourceFile(source: Int, table: String, path: String, offset: Long)

  private val Offset = "\"logOffset\":(-?\\d+)".r
  private val Time = "\"batchTimestampMs\":(\\d+)".r
  private val Watermark = "\"batchWatermarkMs\":(\\d+)".r

  private def numbers(folder: Path): Seq[Long] =
    Option(folder.toFile.list()).toSeq.flatten.filter(_.forall(_.isDigit)).map(_.toLong).sorted
}
