// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.execution.streaming.runtime.{
  StreamingExecutionRelation,
  StreamingRelation
}
import org.apache.spark.sql.execution.streaming.{Offset, Source}
import org.apache.spark.sql.types.ByteType

import org.apache.spark.sql.changelog.compat.OneBatch
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.sources.tables.{FollowedTables, TableRows}

/**
 * The rows that the streams of a query have for one batch, as Spark itself reads them, whatever they are:
 * by the one batch of a throw-away query.
 */
private[changelog] object StreamRows {

  /** The streams of a plan, each reading of one. */
  def in(plan: LogicalPlan): Seq[LogicalPlan] = plan.collect {
    case stream if isStream(stream) => stream
  }

  def isStream(plan: LogicalPlan): Boolean = plan match {
    case _: StreamingRelation | _: StreamingRelationV2 | _: StreamingExecutionRelation => true
    case _ => false
  }

  /**
   * Hands the rows of each stream to `read`, as plans that can be computed as long as that runs. It is not
   * called if none of them has any.
   *
   * @param checkpoint
   *   that of the throw-away query, which may say up to where it reads
   */
  def read(session: SparkSession, streams: Seq[LogicalPlan], checkpoint: Path)(
      read: Seq[(LogicalPlan, LogicalPlan)] => Unit): Unit = {
    // what the query computes is never computed: it only names the sources, in their order
    val inputs = streams.map(Project(Seq(Alias(Literal(1), "one")()), _))
    val plan = if (inputs.size == 1) inputs.head else Union(inputs)
    OneBatch.run(session, plan, checkpoint) { (batch, query) =>
      read(streams.zip(inputsOf(query).map(atRest(batch, _))))
    }
  }

  /** Takes the plan of the batch apart into the rows of each stream. */
  private def inputsOf(query: LogicalPlan): Seq[LogicalPlan] = {
    val inputs = query match {
      case union: Union => union.children
      case single => Seq(single)
    }
    inputs.map {
      case Project(_, input) => input
      case other => throw new IllegalStateException(s"unexpected input:\n$other")
    }
  }

  /** The plan of a batch as one that is no stream. */
  private def atRest(batch: SparkSession, plan: LogicalPlan): LogicalPlan =
    OneBatch.atRest(batch, plan.transform { case rows: TableRows => rows.atRest })
}

/**
 * A source that Spark asks for its latest offset, given the offset before. Only such a source can decide, when a
 * query with the trigger `AvailableNow` starts, what the query is to read.
 */
private[changelog] trait LatestOffsetSource extends Source with SupportsTriggerAvailableNow {

  final override def getOffset: Option[Offset] =
    throw new IllegalStateException("latestOffset is called instead")
}

/** Why a node's output depends on when its input arrived, so that recomputing it gives other rows. */
sealed trait ArrivalDependence

object ArrivalDependence {

  /** `ROW_TTL`: rows expire by the time of their arrival. */
  case object ExpiresByAge extends ArrivalDependence

  /** `lookup`: rows are joined with the table as of their arrival. */
  case object LooksUp extends ArrivalDependence

  /**
   * Rows of a stream are joined with an untracked table as of their arrival.
   *
   * @param table
   *   the relation that reads it
   */
  final case class ReadsUntrackedTable(table: LogicalPlan) extends ArrivalDependence

  /** @param node one of a query that streams, as it was analyzed or as it was rewritten */
  def unapply(node: LogicalPlan): Option[ArrivalDependence] = node match {
    case _: RowTtl | _: ChangelogRowTtl => Some(ExpiresByAge)
    case _: LookupTable | _: LookupJoin => Some(LooksUp)
    case join: ChangelogJoin if join.leftSide.form == SideForm.Nothing => Some(LooksUp)
    case scan: DataSourceV2ScanRelation => unapply(scan.relation)
    case table if FollowedTables.isTable(table) && !FollowedTables.isFixed(table) =>
      Some(ReadsUntrackedTable(table))
    case _ => None
  }
}

/** What becomes of rows whose key is NULL. */
private[changelog] object NullKeys {

  /** For each column of a key that may be NULL, whether it is, and the row kind that such a row then has. */
  def branches(
      types: ChangeTypes,
      key: Seq[Attribute],
      row: Seq[Attribute]): Seq[(Expression, Expression)] =
    key.filter(_.nullable).map { column =>
      val handled = Invoke(
        Literal.fromObject(types),
        "nullKey",
        ByteType,
        Seq(Literal(column.name), ToPrettyString(CreateStruct(row), Some("UTC"))),
        returnNullable = false)
      IsNull(column) -> handled
    }
}
