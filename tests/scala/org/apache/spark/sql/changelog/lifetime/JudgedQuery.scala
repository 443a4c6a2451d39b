// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import java.nio.file.{Files, Path}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing.TextChangelog

/**
 * Compares what a query of [[QueryRunner]] has emitted with batch Spark, batch by batch.
 *
 * What the query holds is judged by the number of the batch; one that was begun and not committed counts
 * for nothing.
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

  private val batches =
    new ReadBatches(session, query, folder.resolve("checkpoint"), tables)
  private val held = mutable.Map.empty[String, Int].withDefaultValue(0)
  private val heldByKey = mutable.Map.empty[String, String]
  private var judged = -1L

  override def toString: String = query.name

  /** How many batches were compared. */
  var compared = 0

  /** How many were not, as they have read sources of one table to different ends. */
  var notCompared = 0

  /** How many files of each table the last judged batch had read. */
  def read: Map[String, Int] = batches.read

  /** How many batches were committed. */
  def committed: Int = batches.numCommitted

  /** Whether the query reads a table. */
  def reads(table: String): Boolean =
    s"\\b(FROM|JOIN) (\\w+_)?$table\\b".r.findFirstIn(query.sql).isDefined

  /** Compares after each batch that was committed since the last call. */
  def judge(): Unit = {
    val differing = Option(folder.toFile.list()).toSeq.flatten.filter(_.startsWith("differs-"))
    assert(differing.isEmpty, s"$query: attempts of a batch differ, see $folder: $differing")
    (judged + 1 to batches.lastCommitted.getOrElse(-1L)).foreach { batch =>
      Files.readAllLines(folder.resolve(s"batch-$batch")).asScala.foreach(apply(_, batch))
      compare(batch)
      judged = batch
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

  private def compare(batch: Long): Unit = batches.expected(batch) match {
    case None => notCompared += 1
    case Some(rows) =>
      val expected = count(rows.map(TextChangelog.format))
      val actual =
        if (query.keyWidth > 0) count(heldByKey.values.toSeq) else held.toMap
      if (actual != expected) {
        throw new AssertionError(s"""$query: after batch $batch, which has read $read, in $folder
             |not in batch: ${difference(actual, expected)}
             |only in batch: ${difference(expected, actual)}""".stripMargin)
      }
      compared += 1
  }
}

object JudgedQuery {
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
