// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.iceberg

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.classic.SparkSession

/** The queries and batches that have written an Iceberg table, according to the summaries of its snapshots. */
private[changelog] object IcebergCommits {
  private val Prefix = "spark-changelog."
  private val Query = Prefix + "query"
  private val Batch = Prefix + "batch"
  private val Generation = Prefix + "generation"

  /** The prefix of settings for the summaries of a session's commits. */
  private val Summary = "spark.sql.iceberg.snapshot-property."

  /** The note of a commit that changes no rows. */
  val SameRows: (String, String) = (Prefix + "rows", "same")

  /** Returns the notes of a batch among those of a snapshot. */
  def notesIn(summary: Map[String, String]): Map[String, String] =
    summary.filter { case (name, _) => name == Query || name == Batch }

  /** Returns whether a snapshot with changed rows has no note, as only another writer's snapshot has. */
  def isOfOthers(snapshot: IcebergSnapshot): Boolean =
    snapshot.changesRows && !snapshot.summary.keys.exists(_.startsWith(Prefix))

  /** Returns the settings of statements that write a batch. */
  def ofBatch(queryId: String, batch: Long): Map[String, String] =
    Map(Summary + Query -> queryId, Summary + Batch -> batch.toString)

  /** Returns the settings of statements that write the rows of a view's generation. */
  def ofGeneration(generation: String): Map[String, String] =
    Map(Summary + Generation -> generation)

  /** Returns the last batch written by a query, unless the snapshot has expired. */
  def lastBatch(session: SparkSession, table: String, queryId: String): Option[Long] = {
    val found =
      try IcebergRelation.newest(session, table)
      catch {
        // The table does not exist yet, or is a path.
        case error: AnalysisException if error.getCondition != "CHANGELOG_ICEBERG_NOT_LINKED" =>
          None
      }
    found.flatMap(table => batches(table, queryId).nextOption().map(_._1))
  }

  /** Returns the batches written by a query, newest first, with the snapshot of each. */
  def batches(table: IcebergTable, queryId: String): Iterator[(Long, IcebergSnapshot)] =
    table.history.filter(_.summary.get(Query).contains(queryId)).map { snapshot =>
      snapshot.summary(Batch).toLong -> snapshot
    }
}
