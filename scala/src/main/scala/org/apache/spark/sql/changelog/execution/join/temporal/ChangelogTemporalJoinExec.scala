// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import java.util.Comparator

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.{BinaryExecNode, SparkPlan}
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.execution._
import org.apache.spark.sql.changelog.execution.expiry.EntryTimes
import org.apache.spark.sql.changelog.execution.join.JoinLayout
import org.apache.spark.sql.changelog.identity.EntryPlacement
import org.apache.spark.sql.changelog.microbatch.BatchTime
import org.apache.spark.sql.changelog.plans.{
  ChangelogJoin, ChangelogTemporalJoin, TemporalMatching, TemporalSide
}

/**
 * Joins each left row with the version valid at the row's time.
 *
 *   - in: any changes of left rows and of versions, each sorted by join key and time
 *   - out: left rows with their version, or padded with NULLs in a left outer join. An inserted or removed
 *     version retracts only the left rows from its time up to the next version, and emits them again with their
 *     new version
 *   - state: the left rows and the versions of each join key, in order of time; see [[TemporalJoinLayout]]
 *   - law: replaying `out` into an empty table gives each left row with the last version not after the row
 *
 * With event times on both sides, no change arrives below the watermark: late rows are dropped. Left rows below
 * the watermark are final and leave the state. Of the versions below the watermark, only the last remains. In
 * append mode, a left row is emitted when it is final.
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

  // the state key's first column is the table
  override def placement: EntryPlacement = EntryPlacement.byColumns(layout.left.key, first = 1)

  // of the two tables with runs, then of the two with directories
  override protected lazy val ttls: Seq[Long] =
    (sides ++ sides).map(_ => if (isTimed) 0L else conf.getConf(ChangelogConf.STATE_TTL))

  /** In append mode, a watermark makes rows final without any change. */
  override protected def closesMoreAt(watermark: Long): Boolean =
    appends && watermark > batchTime.evictionWatermark.getOrElse(0L)

  override protected def doExecute(): RDD[InternalRow] = {
    // available on the driver only
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

/**
 * The times at which a join key has work: the time of its first left row, and of each version, which makes the
 * version before it obsolete.
 */
private[temporal] final class TemporalEntryTimes(layout: TemporalJoinLayout) extends EntryTimes {

  override def dueAt(key: UnsafeRow, value: UnsafeRow, after: Long): Long =
    key.getByte(0) match {
      case 0 => firstTime(value, layout.left, EntryTimes.Always)
      case 1 => firstTime(value, layout.right, after)
      // a directory
      case _ => EntryTimes.Never
    }

  /** Returns the time of the first row of a run after `after`. Rows are in order of time. */
  private def firstTime(value: UnsafeRow, side: TemporalSideLayout, after: Long): Long = {
    val rows = value.getArray(side.number)
    def time(index: Int): Long =
      rows.getStruct(index, side.columns.size).getLong(side.timeOrdinal)
    var (low, high) = (0, rows.numElements())
    while (low < high) {
      val middle = (low + high) >>> 1
      if (time(middle) <= after) low = middle + 1 else high = middle
    }
    if (low == rows.numElements()) EntryTimes.Never else time(low)
  }
}

/**
 * The state layout of one side of a temporal join.
 *
 * @param number
 *   0 for left rows, 1 for versions
 * @param columns
 *   the side's columns, without row kind
 * @param isForward
 *   whether the latest rows come first
 * @param ties
 *   the order of versions with equal times; the last is the valid version
 */
final case class TemporalSideLayout(
    number: Int,
    columns: Seq[Attribute],
    joined: TemporalSide,
    isForward: Boolean,
    ties: Seq[SortOrder])
    extends OrderedSide {

  val name: String = JoinLayout.Names(number)

  def key: Seq[Expression] = joined.key

  def time: Attribute = joined.time

  override def kind: Option[Attribute] = joined.kind

  val timeOrdinal: Int = columns.indexWhere(_.exprId == time.exprId)

  // the first of several rows with equal times is the best, as in the rest of the code
  private val bestFirst: Seq[SortOrder] =
    RowOrder(SortOrder(time, if (isForward) Ascending else Descending) +: ties, columns)

  override val order: Seq[SortOrder] = bestFirst.map { order =>
    val direction = if (order.direction == Ascending) Descending else Ascending
    val nulls = if (order.nullOrdering == NullsFirst) NullsLast else NullsFirst
    SortOrder(order.child, direction, nulls, Nil)
  }

  /** Returns the whole storage order. Spark can sort by the part in `order`. */
  def comparator(): Comparator[UnsafeRow] =
    RowOrder.total(RowOrdering.create(bestFirst, columns)).reversed()

  val struct: StructType = JoinLayout.struct(columns)
}

/**
 * The state columns of a temporal join: the rows of both sides in order, divided into runs.
 *
 * {{{
 *   key    table, join key columns, run          value  left, right, counts
 *   of a run        0 left, 1 right, its number         rows, in order, and the copies of each
 *   of a directory  2 left, 3 right, 0                  the first row of each run, and the runs' numbers
 * }}}
 * A single run has number 0 and needs no directory. `counts` is NULL if each row has a single copy.
 */
final case class TemporalJoinLayout(left: TemporalSideLayout, right: TemporalSideLayout)
    extends OrderedLayout {
  private val sides = Seq(left, right)

  val keySchema: StructType = {
    val joinKey = left.key.map(part => JoinLayout.nameOf(part) -> JoinLayout.plain(part.dataType))
    StateColumns((("table" -> ByteType) +: joinKey) :+ ("run" -> LongType))
  }

  override val valueSchema: StructType = StateColumns(
    sides.map(side => side.name -> ArrayType(side.struct, containsNull = false)) :+
      ("counts" -> ArrayType(LongType, containsNull = false)))

  override val numSides: Int = 2

  override def rowsKey: Seq[BoundReference] = joinKey

  /** The columns of a join key. */
  val joinKey: Seq[BoundReference] =
    left.key.zipWithIndex.map { case (part, index) =>
      BoundReference(index, JoinLayout.plain(part.dataType), nullable = true)
    }
}

object TemporalJoinLayout {
  def apply(join: ChangelogTemporalJoin): TemporalJoinLayout = {
    def side(number: Int, joined: TemporalSide, input: LogicalPlan, ties: Seq[SortOrder]) = {
      val columns = RowKind.without(joined.kind, input.output)
      TemporalSideLayout(number, columns, joined, join.matching.isForward, ties)
    }
    TemporalJoinLayout(
      side(0, join.leftSide, join.left, Nil),
      side(1, join.rightSide, join.right, join.matching.ties))
  }
}
