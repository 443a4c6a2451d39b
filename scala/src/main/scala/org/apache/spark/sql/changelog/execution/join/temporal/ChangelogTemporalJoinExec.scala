// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.{BinaryExecNode, SparkPlan}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.execution._
import org.apache.spark.sql.changelog.execution.expiry.EntryTimes
import org.apache.spark.sql.changelog.identity.EntryPlacement
import org.apache.spark.sql.changelog.microbatch.BatchTime
import org.apache.spark.sql.changelog.plans.{ChangelogJoin, TemporalMatching}

/**
 * Joins each left row with the version of its time.
 *
 *   - in: any changes of left rows and of versions, each sorted by join key and time
 *   - out: left rows beside their version, or beside NULLs in a left outer join. A version that comes
 *     or goes takes back the left rows of its time only, up to the next version, and brings them
 *     again with the other
 *   - state: the left rows and the versions of each join key, in order of time; see
 *     [[TemporalJoinLayout]]
 *   - law: replaying `out` into an empty table gives each left row, beside the last version that is
 *     not after it
 *
 * With event times on both sides no change can come below the watermark: late ones are dropped, left
 * rows below it are certain and go, and of the versions below it only the last one stays. Where the
 * result only grows, a left row comes out when it is certain.
 */
case class ChangelogTemporalJoinExec(
    layout: TemporalJoinLayout,
    matching: TemporalMatching,
    outputKind: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    left: SparkPlan,
    right: SparkPlan)
    extends BinaryExecNode
    with ChangelogStateWriter {
  import matching.{appends, condition, isTimed, joinType}

  private val sides = Seq(layout.left, layout.right)

  override def shortName: String = "changelogTemporalJoin"

  override def simpleString(maxFields: Int): String = {
    val keys = sides.map(side => truncatedString(side.key, "[", ", ", "]", maxFields))
    val times = sides.map(_.time).mkString(", ")
    val rest = condition.map(condition => s", condition=$condition").mkString
    s"$nodeName $joinType(keys=${keys.mkString(" ")}, times=$times$rest, appends=$appends)"
  }

  override def output: Seq[Attribute] =
    ChangelogJoin.output(joinType, layout.left.columns, layout.right.columns) :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(output) -- inputSet

  override def outputPartitioning: Partitioning = left.outputPartitioning

  override def requiredChildDistribution: Seq[Distribution] =
    sides.map(side => clusteredBy(side.key))

  override def requiredChildOrdering: Seq[Seq[SortOrder]] =
    sides.map(side => side.key.map(SortOrder(_, Ascending)) ++ side.order)

  override def stateKeySchema: StructType = layout.keySchema

  override def stateValueSchema: StructType = layout.valueSchema

  // what comes first tells the tables apart
  override def placement: EntryPlacement = EntryPlacement.byColumns(layout.left.key, first = 1)

  // of runs, then of their directories
  override protected lazy val ttls: Seq[Long] =
    (sides ++ sides).map(_ => if (isTimed) 0L else conf.getConf(ChangelogConf.STATE_TTL))

  /** A watermark that moves on makes rows certain, without any change. */
  override protected def closesMoreAt(watermark: Long): Boolean =
    appends && watermark > batchTime.overWatermark.getOrElse(0L)

  override protected def doExecute(): RDD[InternalRow] = {
    // known on the driver only
    val time = if (isTimed) Some(batchTime) else None
    executeWithStore(zipped(children.map(_.execute()))) { (store, inputs) =>
      val Seq(leftRows, rightRows) = inputs.next()
      new TemporalJoinChanges(
        layout,
        matching,
        Seq(left.output, right.output),
        Seq(
          inTime(leftRows, layout.left, left.output, time),
          inTime(rightRows, layout.right, right.output, time)),
        store,
        ages = ttls.map(_ > 0),
        changeMetrics,
        time.flatMap(_.moved),
        time.flatMap(_.moved).map(entriesDue(store, _)).getOrElse(Iterator.empty),
        unmatchedRetractions())
    }
  }

  override protected def entryTimes: Option[EntryTimes] =
    if (isTimed) Some(new TemporalEntryTimes(layout)) else None

  private def inTime(
      rows: Iterator[InternalRow],
      side: TemporalSideLayout,
      columns: Seq[Attribute],
      time: Option[BatchTime]): Iterator[InternalRow] =
    time.flatMap(_.lateWatermark) match {
      case Some(watermark) =>
        val late = LessThanOrEqual(side.time, Literal(watermark * 1000, side.time.dataType))
        applyRemovingRowsOlderThanWatermark(rows, Predicate.create(late, columns))
      case None => rows
    }

  override protected def withNewChildrenInternal(
      newLeft: SparkPlan,
      newRight: SparkPlan): ChangelogTemporalJoinExec = copy(left = newLeft, right = newRight)
}
