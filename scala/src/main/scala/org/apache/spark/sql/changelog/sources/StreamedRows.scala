// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Using
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.json4s.JsonAST._
import org.json4s.jackson.JsonMethods.parse

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.compat.SourceBatches
import org.apache.spark.sql.changelog.sources.tables.{TableRows, TableSourceProvider}

/**
 * How many rows a stream gives between two offsets, as far as that is told without reading all of them: by files and their
 * sizes, by a Delta table, by tables that are followed, by the offsets of Kafka.
 *
 * @param folder
 *   the source's own, in the checkpoint whose offsets they are
 */
private[changelog] class StreamedRows(session: SparkSession, stream: LogicalPlan, folder: Path)
    extends Logging {

  /**
   * None if nothing tells.
   *
   * @param from
   *   none for all from its beginning
   */
  def between(from: Option[String], until: String): Option[Long] =
    try {
      stream match {
        case kafka: StreamingRelationV2 if kafka.sourceName.equalsIgnoreCase("kafka") =>
          Some(records(from, until))
        case _ =>
          SourceBatches
            .sourceOf(stream)
            .filter { source =>
              // to know what has changed in a table it may have to be gone through
              SourceBatches.readsFiles(source) || from.isEmpty &&
              StreamedRows.Tables.exists(_.equalsIgnoreCase(source.className))
            }
            .flatMap { source =>
              val batch = SourceBatches.between(source, folder, from, until)
              RowCounts(session, batch.transform { case rows: TableRows => rows.atRest })
            }
      }
    } catch {
      // whoever reads it meets the same, and tells it
      case NonFatal(error) =>
        logInfo(log"How many rows a source has can't be told", error)
        None
    }

  /** Offsets count records, and transactions beside them. */
  private def records(from: Option[String], until: String): Long = {
    val starts = from.fold(initial)(StreamedRows.byPartition)
    StreamedRows
      .byPartition(until)
      .map { case (partition, end) =>
        // a partition that came later is read from its first record
        end - starts.getOrElse(partition, 0L)
      }
      .sum
  }

  /** Where the query has begun, as Spark has written it down. */
  private def initial: Map[(String, String), Long] = {
    val file = new Path(folder, "0")
    val files = file.getFileSystem(session.sessionState.newHadoopConf())
    val text = Using.resource(files.open(file))(in => new String(in.readAllBytes(), UTF_8))
    // the version stands before
    val start = text.indexOf('{')
    if (start < 0) throw new FileNotFoundException(s"$file holds no offsets")
    StreamedRows.byPartition(text.substring(start))
  }
}

private object StreamedRows {

  /** Sources that begin with all rows that a table had. */
  private val Tables = Seq("delta", TableSourceProvider.Name)

  private def byPartition(offsets: String): Map[(String, String), Long] = {
    val JObject(topics) = parse(offsets): @unchecked
    for {
      (topic, JObject(partitions)) <- topics.toMap
      (partition, JInt(offset)) <- partitions
    } yield (topic, partition) -> offset.toLong
  }
}
