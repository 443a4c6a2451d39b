// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import java.util.Comparator

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
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
  ChangelogJoin,
  ChangelogTemporalJoin,
  TemporalMatching,
  TemporalSide
}

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

/** Plans a [[ChangelogTemporalJoin]]. */
object PlanChangelogTemporalJoin {
  def apply(
      join: ChangelogTemporalJoin,
      state: StatefulOperatorStateInfo,
      left: SparkPlan,
      right: SparkPlan): SparkPlan = {
    val sides = Seq(join.leftSide -> join.left, join.rightSide -> join.right).zipWithIndex.map {
      case ((side, input), number) =>
        val columns = RowKind.without(side.kind, input.output)
        val ties = if (number == 1) join.matching.ties else Nil
        TemporalSideLayout(number, columns, side, join.matching.isForward, ties)
    }
    ChangelogTemporalJoinExec(
      TemporalJoinLayout(sides(0), sides(1)),
      join.matching,
      join.outputKind,
      Some(state),
      left,
      right)
  }
}

/**
 * When a join key has something that is certain: with its first left row, and with each version, which lets
 * go the one before it.
 */
private[temporal] final class TemporalEntryTimes(layout: TemporalJoinLayout) extends EntryTimes {

  override def dueAt(key: UnsafeRow, value: UnsafeRow, after: Long): Long =
    key.getByte(0) match {
      case 0 => firstTime(value, layout.left, EntryTimes.Always)
      case 1 => firstTime(value, layout.right, after)
      // a directory
      case _ => EntryTimes.Never
    }

  /** The time of the first row of a run after `after`. Rows are in order of time. */
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
 * One side of a temporal join.
 *
 * @param number
 *   0 for left rows, 1 for versions
 * @param columns
 *   its columns, without row kind
 * @param isForward
 *   whether the latest rows come first
 * @param ties
 *   which of several rows of one time is meant; it comes last
 */
final case class TemporalSideLayout(
    number: Int,
    columns: Seq[Attribute],
    joined: TemporalSide,
    isForward: Boolean,
    ties: Seq[SortOrder]) {

  val name: String = JoinLayout.Names(number)

  def key: Seq[Expression] = joined.key

  def time: Attribute = joined.time

  val timeOrdinal: Int = columns.indexWhere(_.exprId == time.exprId)

  // the best of several rows of one time is the first one, as everywhere
  private val bestFirst: Seq[SortOrder] =
    RowOrder(SortOrder(time, if (isForward) Ascending else Descending) +: ties, columns)

  /** The order rows are kept in, as far as Spark can sort by it. */
  val order: Seq[SortOrder] = bestFirst.map { order =>
    val direction = if (order.direction == Ascending) Descending else Ascending
    val nulls = if (order.nullOrdering == NullsFirst) NullsLast else NullsFirst
    SortOrder(order.child, direction, nulls, Nil)
  }

  /** The whole order, of which Spark can sort by `order`. */
  def comparator(): Comparator[UnsafeRow] =
    RowOrder.total(RowOrdering.create(bestFirst, columns)).reversed()

  val struct: StructType = JoinLayout.struct(columns)
}

/**
 * Says in which columns a temporal join keeps the rows of both sides: in order, cut into runs.
 *
 * {{{
 *   key    table, join key columns, run          value  left, right, counts
 *   of a run        0 left, 1 right, its number         rows, in order, and how often each is there
 *   of a directory  2 left, 3 right, 0                  the first row of each run, and the runs' numbers
 * }}}
 * As long as there is one run, number 0, there is no directory. `counts` is NULL where each row is
 * there once.
 */
final case class TemporalJoinLayout(left: TemporalSideLayout, right: TemporalSideLayout) {
  private val sides = Seq(left, right)

  val keySchema: StructType = {
    val joinKey = left.key.map(part => JoinLayout.nameOf(part) -> JoinLayout.plain(part.dataType))
    StateColumns((("table" -> ByteType) +: joinKey) :+ ("run" -> LongType))
  }

  val valueSchema: StructType = StateColumns(
    sides.map(side => side.name -> ArrayType(side.struct, containsNull = false)) :+
      ("counts" -> ArrayType(LongType, containsNull = false)))

  /** The columns of a join key. */
  val joinKey: Seq[BoundReference] =
    left.key.zipWithIndex.map { case (part, index) =>
      BoundReference(index, JoinLayout.plain(part.dataType), nullable = true)
    }
}
