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
 * Rejects a changed query that reads deleted files again. Spark's source would silently read only
 * the remaining files.
 *
 * @param refused
 *   the error, given the reason
 */
private[evolution] class CheckSourceFiles(
    session: SparkSession,
    stopped: StoppedQuery,
    refused: String => AnalysisException) {
  import FirstBatchReads.Read

  /**
   * @param reads
   *   the inputs of the first batch
   */
  def apply(reads: Seq[Read]): Unit = for {
    case Read.OfStream(stream) <- reads
    source <- SourceBatches.sourceOf(stream) if SourceBatches.readsFiles(source)
    place <- stopped.placeOf(stream)
  } {
    val entries = SourceBatches.filesGiven(session, stopped.folderOf(place))
    val gone = entries.groupBy(_.getParent).flatMap { case (folder, files) =>
      val there = namesIn(folder)
      files.filterNot(file => there(file.getName))
    }
    gone.headOption.foreach { file =>
      throw refused(
        s"${gone.size} of ${entries.size} files to read again are missing, such as $file")
    }
  }

  private def namesIn(folder: Path): Set[String] = {
    val files = folder.getFileSystem(session.sessionState.newHadoopConf())
    try files.listStatus(folder).map(_.getPath.getName).toSet
    catch { case _: FileNotFoundException => Set.empty }
  }
}

/**
 * Rejects a changed query if the first batch would recompute rows that depend on arrival. Two
 * kinds of rows are safe: rows below kept state, and rows new in the changed query.
 *
 * {{{
 *   Project g, s, added                    Filter n > 1
 *   +- Join                                +- ChangelogAggregate  all its rows are read from its state
 *      :- ChangelogAggregate                  +- Join
 *      +- names, an unfollowed table             :- orders
 *   rejected                                     +- names
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

  /**
   * @param reads
   *   the computations of the first batch
   */
  def apply(reads: FirstBatchReads): Unit = {
    reads.computed.foreach {
      case node @ ArrivalDependence(why) if wasReadBefore(why) => throw refused(reason(why, node))
      case _ =>
    }
    if (was.operators.exists(_.hasTtl)) {
      is.operators.filterNot(kept.contains).find(_.hasTtl).foreach { operator =>
        throw refused(
          s"${operator.shown} would start again, and rows forgotten by a TTL would return; " +
            "change the query without spark.sql.changelog.state.ttl")
      }
    }
  }

  private def reason(why: ArrivalDependence, node: LogicalPlan): String = why match {
    case ArrivalDependence.ExpiresByAge =>
      s"${shown(node)} would start again, and rows deleted by ROW_TTL would return; $WayOut"
    case ArrivalDependence.KeepsCommits =>
      s"${shown(node)} would start again, and versions before this batch would be lost"
    case ArrivalDependence.LooksUp =>
      s"${shown(node)} would start again, and join rows with the current table of lookup"
    case ArrivalDependence.ReadsUntrackedTable(table) =>
      s"rows would join the current rows of ${FollowedTables.describe(table)}, whose changes are " +
        s"not followed; $WayOut"
  }

  private def shown(node: LogicalPlan): String = node match {
    case operator: KeepsState =>
      is.operators.find(_.ids.contains(operator.operatorId)).map(_.shown).mkString
    case other => other.nodeName
  }

  /** Whether the predecessor has such rows. */
  private def wasReadBefore(why: ArrivalDependence): Boolean = why match {
    case ArrivalDependence.ExpiresByAge => was.lines.exists(_.contains("RowTtl"))
    case ArrivalDependence.KeepsCommits => was.lines.exists(_.contains("CommitHistory"))
    case ArrivalDependence.LooksUp => was.lines.exists(_.contains("LookupJoin"))
    // A view of Spark's has other names for a table.
    case _: ArrivalDependence.ReadsUntrackedTable => tablesOf(was).exists(tablesOf(is).contains)
  }

  private def tablesOf(record: QueryRecord): Seq[String] =
    record.lines.flatMap(Table.findFirstMatchIn(_)).map(_.group(1))

  private val Table = "^ *s\\d+: ((?:table|files) .*)".r

  private val WayOut =
    "an operator above with stored rows, such as an aggregate, can continue if nothing below changes"
}

/**
 * Rejects a changed query with a snapshot that is unavailable in the first batch.
 *
 * {{{
 *   the feed was read, the snapshot is new      the snapshot would come after the feed, and replace newer rows
 *   the snapshot was copied, and is read again  the copy was for the first batch of the predecessor
 * }}}
 *
 * @param sources
 *   the sources of the changed query
 * @param refused
 *   the error, given the reason
 */
private[evolution] class CheckSnapshots(
    stopped: StoppedQuery,
    sources: KnownSources,
    refused: String => AnalysisException) {
  import FirstBatchReads.Read

  /**
   * @param query
   *   the changed query, as analyzed
   */
  def checkNew(query: LogicalPlan): Unit = {
    val streams = SourceNames.named(query).map(_._1)
    query.collectWithSubqueries {
      case source: FromChangelog if source.streaming =>
        val (snapshots, feeds) =
          SourceNames.named(source.child).map(_._1).partition(isSnapshot)
        def isKnown(stream: LogicalPlan) = sources.before(streams.indexOf(stream)).nonEmpty
        if (feeds.exists(isKnown) && !snapshots.forall(isKnown)) {
          throw refused(
            "a feed already read begins with another snapshot, or gets a snapshot, whose rows would " +
              "arrive after newer rows of the feed; keep the snapshot argument")
        }
    }
    ()
  }

  /**
   * @param reads
   *   the inputs of the first batch
   */
  def checkExist(reads: Seq[Read]): Unit = reads.foreach {
    case Read.OfStream(stream) if isSnapshot(stream) && isCopied(stream) =>
      throw refused(
        "a snapshot would be read again, but a copy was made, and only for the first batch")
    case _ =>
  }

  private def isSnapshot(stream: LogicalPlan): Boolean =
    InitialSnapshotData.rowsOf(stream).nonEmpty

  private def isCopied(stream: LogicalPlan): Boolean =
    stopped.placeOf(stream).flatMap(stopped.endOf(_).flatten).exists(InitialSnapshotData.isCopied)
}

/**
 * FirstBatchReads: the inputs of each operator in the first batch of a changed query.
 *
 * @param plan
 *   the rewritten changed query
 * @param operators
 *   the records of its nodes
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

  /** Returns the uppermost of a node's operators. */
  private def uppermost(record: OperatorRecord): Option[LogicalPlan with KeepsState] =
    nodes.find(node => record.ids.contains(node.operatorId))

  private val emitting: Set[Long] =
    operators.filter(kept.emits).flatMap(uppermost).map(_.operatorId).toSet

  def apply(operator: OperatorRecord): Seq[Read] =
    if (kept.contains(operator) && !kept.emits(operator)) Nil
    else uppermost(operator).toSeq.flatMap(in).distinct

  /** Returns all inputs of the first batch. */
  def all: Seq[Read] = in(plan).distinct

  /** Returns the nodes that compute rows in the first batch. */
  def computed: Seq[LogicalPlan] = computedIn(plan)

  private def computedIn(plan: LogicalPlan): Seq[LogicalPlan] = plan match {
    case operator: KeepsState if emitting(operator.operatorId) => Nil
    case reading: SharedReading => parts.get(reading.changes).toSeq.flatMap(computedIn)
    case other => other +: (other.children ++ other.subqueries).flatMap(computedIn)
  }

  private def in(plan: LogicalPlan): Seq[Read] = plan match {
    // The replay, another child of the same parent, has the input.
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

    /** The complete state of an operator. */
    case class OfState(operator: Long) extends Read

    /** A stream, from its beginning. */
    case class OfStream(stream: LogicalPlan) extends Read

    /** The rows of a static table. */
    case class OfTable(rows: LogicalPlan) extends Read
  }
}
