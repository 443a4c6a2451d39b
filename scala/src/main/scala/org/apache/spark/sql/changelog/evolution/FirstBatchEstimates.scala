// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import java.util.Locale

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.identity.{OperatorRecord, SourceNames}
import org.apache.spark.sql.changelog.sources.{RowCounts, StreamedRows}

/**
 * Says how many rows the batch reads in which a changed query begins, for each operator, and how long that may take.
 *
 * @param streams
 *   those that the changed query reads
 * @param earlier
 *   how long rows of it took before, if that is known from elsewhere than its checkpoint
 */
private[evolution] class FirstBatchEstimates(
    session: SparkSession,
    begun: BegunQuery,
    kept: KeptParts,
    reads: FirstBatchReads,
    streams: Seq[LogicalPlan],
    earlier: Seq[TakenTime]) {
  import FirstBatchReads.Read

  private val hadoopConf = session.sessionState.newHadoopConf()

  def apply(operators: Seq[(OperatorFate, Option[OperatorRecord])]): Seq[EstimatedFate] = {
    val readBy = operators.map { case (_, record) => record.toSeq.flatMap(reads(_)) }
    val entries = {
      val stored = readBy.flatten.collect { case Read.OfState(operator) =>
        kept.numbers(operator)
      }
      new CountedEntries(session, begun)(stored.toSet)
    }
    val counts = readBy.flatten.distinct.map(read => read -> count(read, entries)).toMap
    operators.zip(readBy).map { case ((fate, _), read) =>
      val unknown = read.filter(counts(_).isEmpty)
      if (unknown.nonEmpty) {
        val what = unknown.map(shown).distinct.mkString(", ")
        EstimatedFate(fate, None, None, s"not known: nothing tells how many rows $what has")
      } else if (read.isEmpty) EstimatedFate(fate, Some(0L), Some(0.0), "nothing is read")
      else {
        val rows = read.flatMap(counts(_)).sum
        val (seconds, told) = pace.estimate(rows)
        EstimatedFate(fate, Some(rows), Some(seconds), told)
      }
    }
  }

  private def count(read: Read, entries: Map[Long, Long]): Option[Long] = read match {
    case Read.OfState(operator) => entries.get(kept.numbers(operator))
    case Read.OfStream(stream) =>
      begun.placeOf(stream) match {
        case Some(place) =>
          begun.endOf(place).flatMap {
            case Some(end) => rowsOf(place, stream).between(None, end)
            case None => Some(0L)
          }
        // one that is new comes with a later batch
        case None => Some(0L)
      }
    case Read.OfTable(rows) => RowCounts(session, rows)
  }

  private def shown(read: Read): String = read match {
    case Read.OfState(operator) => s"the state of operator ${kept.numbers(operator)}"
    case Read.OfStream(stream) => nameOf(stream)
    case Read.OfTable(rows) => rows.simpleString(MaxFields).toLowerCase(Locale.ROOT)
  }

  private def nameOf(stream: LogicalPlan): String = SourceNames(stream).head

  private def rowsOf(place: Int, stream: LogicalPlan): StreamedRows =
    new StreamedRows(session, stream, begun.folderOf(place))

  private lazy val pace: Pace = {
    val cores = math.min(session.sparkContext.defaultParallelism, begun.numPartitions)
    Pace
      .ofEarlier(earlier)
      .orElse(Pace.ofEarlier(ofCheckpoint.taken))
      .getOrElse(Pace.measured(cores))
  }

  private def ofCheckpoint: EarlierBatches = {
    val logs = new BatchLogs(session, begun.checkpoint)
    val known = begun.record.streams.zipWithIndex.map { case (name, place) =>
      streams.find(nameOf(_) == name).map(rowsOf(place, _))
    }
    new EarlierBatches(begun, logs, known, hadoopConf)
  }

  private val MaxFields = 3
}
