// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import java.nio.file.{Files, Path}
import java.sql.Timestamp

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.FileStreamSourceLog

import org.apache.spark.sql.changelog.testing.TextChangelog

/**
 * Compares what a query of [[QueryRunner]] has emitted with batch Spark, batch by batch.
 *
 * Which files a batch has read is seen in its checkpoint: so what the query holds is judged by the
 * number of the batch, and a batch that was begun and not committed counts for nothing.
 *
 * @param folder
 *   the query's, with its checkpoint
 */
class JudgedQuery(
    session: SparkSession,
    query: OperatorQuery,
    folder: Path,
    tables: Map[String, ArrivingTable]) {
  import JudgedQuery._

  private val checkpoint = folder.resolve("checkpoint")
  private val held = mutable.Map.empty[String, Int].withDefaultValue(0)
  private val heldByKey = mutable.Map.empty[String, String]
  private val times = mutable.Map.empty[(String, String), Long]
  private var judged = -1L
  private var files = Map.empty[String, Int]

  override def toString: String = query.name

  /** How many batches were compared. */
  var compared = 0

  /** How many were not, as they have read sources of one table to different ends. */
  var notCompared = 0

  /** How many files of each table the last judged batch had read. */
  def read: Map[String, Int] = files

  /** How many batches were committed. */
  def committed: Int = numbers(checkpoint.resolve("commits")).size

  /** Whether the query reads a table. */
  def reads(table: String): Boolean =
    s"\\b(FROM|JOIN) (\\w+_)?$table\\b".r.findFirstIn(query.sql).isDefined

  /** Compares after each batch that was committed since the last call. */
  def judge(): Unit = {
    val differing = list(folder).filter(_.startsWith("differs-"))
    assert(differing.isEmpty, s"$query: attempts of a batch differ, see $folder: $differing")
    val last = numbers(checkpoint.resolve("commits")).maxOption.getOrElse(-1L)
    if (last > judged) {
      val arrivals = sourceFiles()
      (judged + 1 to last).foreach { batch =>
        Files.readAllLines(folder.resolve(s"batch-$batch")).asScala.foreach(apply(_, batch))
        judge(batch, arrivals)
        judged = batch
      }
    }
  }

  private def apply(change: String, batch: Long): Unit = {
    val (row, kind) = change.splitAt(change.lastIndexOf(' '))
    val isGone = kind == " delete" || kind == " update_preimage"
    def fail(): Unit = throw new AssertionError(
      s"$query: batch $batch takes back a row that is not there: $row, in $folder")
    if (query.keyWidth > 0) {
      val key = row.split(' ').take(query.keyWidth).mkString(" ")
      if (!isGone) heldByKey(key) = row
      else if (heldByKey.remove(key).isEmpty) fail()
    } else if (!isGone) held(row) += 1
    else if (held(row) == 0) fail()
    else if (held(row) == 1) held -= row
    else held(row) -= 1
  }

  private def judge(batch: Long, arrivals: Seq[SourceFile]): Unit = {
    val offsets = Files.readAllLines(checkpoint.resolve(s"offsets/$batch")).asScala.toSeq
    val ends = offsets.drop(2).map { offset =>
      Offset.findFirstMatchIn(offset).fold(-1L)(_.group(1).toLong)
    }
    def sizeOfRead(files: Seq[SourceFile]) =
      files.filter(file => file.offset <= ends(file.source)).map(_.path).distinct.size
    val bySource = arrivals.groupBy(file => (file.table, file.source)).toSeq.map {
      case ((table, _), files) => table -> sizeOfRead(files)
    }
    val byTable = bySource.groupMap(_._1)(_._2)
    files = tables.keys.map(table => table -> byTable.get(table).fold(0)(_.min)).toMap
    val time = timeOf(batch)
    val watermark = Watermark.findFirstMatchIn(offsets(1)).get.group(1).toLong
    noteTimes(arrivals, ends, time)
    // a file that arrives while sources look is read by one of them first: no table is like that
    if (byTable.values.forall(_.distinct.size == 1)) compare(batch, time, watermark)
    else notCompared += 1
  }

  private def compare(batch: Long, time: Long, watermark: Long): Unit = {
    val expected = batchRows(files, time, watermark)
    val actual =
      if (query.keyWidth > 0) count(heldByKey.values.toSeq) else held.toMap
    if (actual != expected) {
      throw new AssertionError(s"""$query: after batch $batch, which has read $files, in $folder
           |not in batch: ${difference(actual, expected)}
           |only in batch: ${difference(expected, actual)}""".stripMargin)
    }
    compared += 1
  }

  /** What time it was in a batch, in ms. */
  private def timeOf(batch: Long): Long = {
    val metadata = Files.readAllLines(checkpoint.resolve(s"offsets/$batch")).get(1)
    Time.findFirstMatchIn(metadata).get.group(1).toLong
  }

  /** The files that no batch before has read were read now. */
  private def noteTimes(arrivals: Seq[SourceFile], ends: Seq[Long], time: Long): Unit =
    arrivals.filter(file => file.offset <= ends(file.source)).foreach { file =>
      times.getOrElseUpdate((file.table, file.path), time)
    }

  private def timesOf(table: String): Seq[Long] =
    times.toSeq.collect { case ((`table`, path), time) => path -> time }.sorted.map(_._2)

  private def batchRows(
      files: Map[String, Int],
      time: Long,
      watermark: Long): Map[String, Int] = {
    tables.foreach { case (name, table) =>
      val since = query.ttl.filter(_ => name == "t").map(time - _)
      table.read(session, files(name), timesOf(name), since)
    }
    // as a condition of the query, Spark would ask it of rows before it has made sessions of them
    val rows =
      session.sql(query.sql.replace("now()", s"timestamp_millis(${time}L)")).collect().toSeq
    val passed = query.passed.fold(rows) { time =>
      rows.filter(_.getAs[Timestamp](time).getTime <= watermark)
    }
    count(passed.map(TextChangelog.format))
  }

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

object JudgedQuery {
  private case class SourceFile(source: Int, table: String, path: String, offset: Long)

  private val Offset = "\"logOffset\":(-?\\d+)".r
  private val Time = "\"batchTimestampMs\":(\\d+)".r
  private val Watermark = "\"batchWatermarkMs\":(\\d+)".r

  private def list(folder: Path): Seq[String] =
    Option(folder.toFile.list()).fold(Seq.empty[String])(_.toSeq)

  private def numbers(folder: Path): Seq[Long] =
    list(folder).filter(_.forall(_.isDigit)).map(_.toLong).sorted

  private def count(rows: Seq[String]): Map[String, Int] =
    rows.groupMapReduce(identity)(_ => 1)(_ + _)

  private def difference(left: Map[String, Int], right: Map[String, Int]): String =
    left
      .filter { case (row, count) => right.getOrElse(row, 0) < count }
      .keys
      .toSeq
      .sorted
      .take(20)
      .mkString("\n  ", "\n  ", "")
}
