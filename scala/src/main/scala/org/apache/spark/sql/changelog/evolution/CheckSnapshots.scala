// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.identity.SourceNames
import org.apache.spark.sql.changelog.plans.FromChangelog
import org.apache.spark.sql.changelog.sources.snapshots.InitialSnapshotData

/**
 * Refuses a changed query that begins with a snapshot which is not there for its first batch.
 *
 * {{{
 *   the feed was read, the snapshot is new     would come a batch after the feed, and replace newer rows
 *   the snapshot was copied, and is read anew  the copy was for the first batch of the query before
 * }}}
 *
 * @param sources
 *   those of the changed query
 * @param refused
 *   the error, given the reason
 */
private[evolution] class CheckSnapshots(
    begun: BegunQuery,
    sources: KnownSources,
    refused: String => AnalysisException) {
  import FirstBatchReads.Read

  /** @param query the changed query, as it was analyzed */
  def checkNew(query: LogicalPlan): Unit = {
    val streams = SourceNames.named(query).map(_._1)
    query.collectWithSubqueries {
      case source: FromChangelog if source.streaming =>
        val (snapshots, feeds) =
          SourceNames.named(source.child).map(_._1).partition(isSnapshot)
        def isKnown(stream: LogicalPlan) = sources.before(streams.indexOf(stream)).nonEmpty
        if (feeds.exists(isKnown) && !snapshots.forall(isKnown)) {
          throw refused(
            "a feed that has been read begins with another snapshot, or has got one, whose rows would come " +
              "after newer ones of the feed; leave the snapshot as it was")
        }
    }
    ()
  }

  /** @param reads what the first batch reads */
  def checkThere(reads: Seq[Read]): Unit = reads.foreach {
    case Read.OfStream(stream) if isSnapshot(stream) && isCopied(stream) =>
      throw refused(
        "a snapshot would be read once more of which a copy was made, and that was kept for the first batch only")
    case _ =>
  }

  private def isSnapshot(stream: LogicalPlan): Boolean =
    InitialSnapshotData.rowsOf(stream).nonEmpty

  private def isCopied(stream: LogicalPlan): Boolean =
    begun.placeOf(stream).flatMap(begun.endOf(_).flatten).exists(InitialSnapshotData.isCopied)
}
