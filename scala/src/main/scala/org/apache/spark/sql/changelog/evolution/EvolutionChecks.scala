// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import java.io.FileNotFoundException

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.compat.SourceBatches
import org.apache.spark.sql.changelog.identity.{OperatorRecord, QueryRecord, SourceNames}
import org.apache.spark.sql.changelog.microbatch.SharedChanges
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.sources.snapshots.InitialSnapshotData
import org.apache.spark.sql.changelog.sources.tables.FollowedTables
import org.apache.spark.sql.changelog.sources.{ArrivalDependence, StreamRows}

/**
 * Refuses a changed query that reads files anew of which some are gone: Spark's source would give the rows of
 * the others, and say nothing.
 *
 * @param refused
 *   the error, given the reason
 */
private[evolution] class CheckFilesThere(
    session: SparkSession,
    begun: StoppedQuery,
    refused: String => AnalysisException) {
  import FirstBatchReads.Read

  /** @param reads what the first batch reads */
  def apply(reads: Seq[Read]): Unit = for {
    case Read.OfStream(stream) <- reads
    source <- SourceBatches.sourceOf(stream) if SourceBatches.readsFiles(source)
    place <- begun.placeOf(stream)
  } {
    val entries = SourceBatches.filesGiven(session, begun.folderOf(place))
    val gone = entries.groupBy(_.getParent).flatMap { case (folder, files) =>
      val there = namesIn(folder)
      files.filterNot(file => there(file.getName))
    }
    gone.headOption.foreach { file =>
      throw refused(
        s"${gone.size} of ${entries.size} files that would be read once more are gone, such as $file")
    }
  }

  private def namesIn(folder: Path): Set[String] = {
    val files = folder.getFileSystem(session.sessionState.newHadoopConf())
    try files.listStatus(folder).map(_.getPath.getName).toSet
    catch { case _: FileNotFoundException => Set.empty }
  }
}

/**
 * Refuses a changed query whose first batch would compute rows anew that depend on when they came. What is read from
 * kept state above them has stayed as it was, and what the query before did not have begins with the changed one.
 *
 * {{{
 *   Project g, s, added                    Filter n > 1
 *   +- Join                                +- ChangelogAggregate  all its rows are read from its state
 *      :- ChangelogAggregate                  +- Join
 *      +- names, a table not followed            :- orders
 *   refused                                      +- names
 * }}}
 *
 * @param refused
 *   the error, given the reason
 */
private[evolution] class CheckArrivalDependence(
    was: QueryRecord,
    is: QueryRecord,
    kept: ReusableState,
    refused: String => AnalysisException) {

  /** @param reads what is computed in the first batch */
  def apply(reads: FirstBatchReads): Unit = {
    reads.computed.foreach {
      case node @ ArrivalDependence(why) if wasThere(why) => throw refused(reason(why, node))
      case _ =>
    }
    if (was.operators.exists(_.hasTtl)) {
      is.operators.filterNot(kept.contains).find(_.hasTtl).foreach { operator =>
        throw refused(
          s"${operator.shown} would begin anew, and what it has forgotten by a TTL would come back; " +
            "change the query without spark.sql.changelog.state.ttl")
      }
    }
  }

  private def reason(why: ArrivalDependence, node: LogicalPlan): String = why match {
    case ArrivalDependence.ExpiresByAge =>
      s"${shown(node)} would begin anew, and rows that have left by ROW_TTL would come back; $WayOut"
    case ArrivalDependence.LooksUp =>
      s"${shown(node)} would begin anew, and join rows once more, with the table of lookup as it is now"
    case ArrivalDependence.ReadsUntrackedTable(table) =>
      s"rows would meet ${FollowedTables.describe(table)} once more, as it is now, for its changes are not followed; " +
        WayOut
  }

  private def shown(node: LogicalPlan): String = node match {
    case operator: KeepsState =>
      is.operators.find(_.ids.contains(operator.operatorId)).map(_.shown).mkString
    case other => other.nodeName
  }

  /** Whether the query before has such rows. */
  private def wasThere(why: ArrivalDependence): Boolean = why match {
    case ArrivalDependence.ExpiresByAge => was.lines.exists(_.contains("RowTtl"))
    case ArrivalDependence.LooksUp => was.lines.exists(_.contains("LookupJoin"))
    // a view of Spark's names a table otherwise
    case _: ArrivalDependence.ReadsUntrackedTable => tablesOf(was).exists(tablesOf(is).contains)
  }

  private def tablesOf(record: QueryRecord): Seq[String] =
    record.lines.flatMap(Table.findFirstMatchIn(_)).map(_.group(1))

  private val Table = "^ *s\\d+: ((?:table|files) .*)".r

  private val WayOut =
    "an operator above that keeps its rows, such as an aggregate, can go on where nothing below it is changed"
}

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
    begun: StoppedQuery,
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

/**
 * What is read for each operator in the batch in which a changed query begins.
 *
 * @param plan
 *   the changed query as it was rewritten
 * @param operators
 *   what is written down of its nodes
 */
private[evolution] class FirstBatchReads(
    plan: LogicalPlan,
    operators: Seq[OperatorRecord],
    kept: ReusableState) {
  import FirstBatchReads._

  private val nodes: Seq[LogicalPlan with KeepsState] = plan.collect {
    case operator: KeepsState if !operator.isInstanceOf[ReplayedVersion] => operator
  }
  private val parts: Map[SharedChanges, SharedPart] = plan.collect { case part: SharedPart =>
    part.changes -> part
  }.toMap

  /** The uppermost of a node's operators; others of it lie below. */
  private def uppermost(record: OperatorRecord): Option[LogicalPlan with KeepsState] =
    nodes.find(node => record.ids.contains(node.operatorId))

  private val emitting: Set[Long] =
    operators.filter(kept.emits).flatMap(uppermost).map(_.operatorId).toSet

  def apply(operator: OperatorRecord): Seq[Read] =
    if (kept.contains(operator) && !kept.emits(operator)) Nil
    else uppermost(operator).toSeq.flatMap(in).distinct

  /** All inputs that the first batch reads. */
  def all: Seq[Read] = in(plan).distinct

  /** The nodes that compute rows in it, of what is read. */
  def computed: Seq[LogicalPlan] = computedIn(plan)

  private def computedIn(plan: LogicalPlan): Seq[LogicalPlan] = plan match {
    case operator: KeepsState if emitting(operator.operatorId) => Nil
    case reading: SharedReading => parts.get(reading.changes).toSeq.flatMap(computedIn)
    case other => other +: (other.children ++ other.subqueries).flatMap(computedIn)
  }

  private def in(plan: LogicalPlan): Seq[Read] = plan match {
    // what gives these is another child of the same node
    case _: ReplayedVersion => Nil
    case operator: KeepsState if emitting(operator.operatorId) =>
      Seq(Read.OfState(operator.operatorId))
    case reading: SharedReading => parts.get(reading.changes).toSeq.flatMap(in)
    case leaf if leaf.children.isEmpty =>
      Seq(if (StreamRows.isStream(leaf)) Read.OfStream(leaf) else Read.OfTable(leaf))
    case other => other.children.flatMap(in)
  }
}

private[evolution] object FirstBatchReads {
  sealed trait Read

  object Read {

    /** All that an operator keeps. */
    case class OfState(operator: Long) extends Read

    /** A stream, from its beginning. */
    case class OfStream(stream: LogicalPlan) extends Read

    /** Rows that are no stream's. */
    case class OfTable(rows: LogicalPlan) extends Read
  }
}
