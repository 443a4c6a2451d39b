// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.changelog.checkpoint.{BatchLogs, QueryOrigin}
import org.apache.spark.sql.changelog.identity.TakenOver
import org.apache.spark.sql.changelog.sources.StreamedRows

/**
 * How long earlier batches of a query took, and how many rows they read, as far as its checkpoint tells.
 *
 * @param streams
 *   what can be told of each of its streams
 */
private[evolution] class EarlierBatches(
    begun: BegunQuery,
    logs: BatchLogs,
    streams: Seq[Option[StreamedRows]],
    hadoopConf: Configuration) {

  /** Those that took longest: to know what the others read would tell no more. */
  def taken: Seq[TakenTime] = {
    val timed = for {
      batch <- (begun.batch - Last + 1) to begun.batch if batch > begins
      millis <- logs.millisOf(batch)
    } yield batch -> millis
    for {
      (batch, millis) <- timed.sortBy(-_._2).take(Longest)
      rows <- rowsOf(batch)
    } yield TakenTime(s"batch $batch", rows, millis / 1000.0)
  }

  /** The batch with which its checkpoint begins, whose files are of the query before, or were written with it. */
  private def begins: Long = {
    val takenOver = TakenOver.file(begun.checkpoint, hadoopConf).find().map(TakenOver.fromJson)
    val origin = QueryOrigin.read(begun.checkpoint, hadoopConf).headOption
    (takenOver.map(_.batch) ++ origin.flatMap(_.batch)).maxOption.getOrElse(-1L)
  }

  private def rowsOf(batch: Long): Option[Long] = {
    def ends(batch: Long) = begun.logs.offsets(batch).flatMap(_.inOrder)
    for {
      until <- ends(batch)
      from <- if (batch == 0) Some(until.map(_ => None)) else ends(batch - 1)
      counts = from.zip(until).zipWithIndex.map { case ((from, until), reading) =>
        until.fold(Option(0L)) { until =>
          if (from.contains(until)) Some(0L)
          else streams(begun.record.readings(reading)).flatMap(_.between(from, until))
        }
      } if counts.forall(_.isDefined)
    } yield counts.flatten.sum
  }

  private val Last = 20

  private val Longest = 3
}
