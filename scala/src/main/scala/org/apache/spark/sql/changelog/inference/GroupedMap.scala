// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression, DeclarativeAggregate
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.AnyTimestampType

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.inference.times.EventTime

/**
 * A grouped map: a user function called with all rows of each group, of one input or of two
 * cogrouped inputs.
 *
 * @param groups
 *   the grouping columns of each input
 * @param orders
 *   the order in which the function reads the rows of each input
 */
final case class GroupedMap(groups: Seq[Seq[Attribute]], orders: Seq[Seq[SortOrder]])

object GroupedMap {

  def unapply(plan: LogicalPlan): Option[GroupedMap] = plan match {
    case map: MapGroups => Some(GroupedMap(Seq(map.groupingAttributes), Seq(map.dataOrder)))
    case map: FlatMapGroupsInPandas => Some(unordered(map.groupingAttributes))
    case map: FlatMapGroupsInArrow => Some(unordered(map.groupingAttributes))
    case map: CoGroup =>
      Some(GroupedMap(Seq(map.leftGroup, map.rightGroup), Seq(map.leftOrder, map.rightOrder)))
    case map: FlatMapCoGroupsInPandas => Some(unordered(map.leftAttributes, map.rightAttributes))
    case map: FlatMapCoGroupsInArrow => Some(unordered(map.leftAttributes, map.rightAttributes))
    case _ => None
  }

  private def unordered(groups: Seq[Attribute]*): GroupedMap =
    GroupedMap(groups, groups.map(_ => Nil))

  /**
   * Returns the grouped map whose results `plan` emits, directly or through functions of single
   * results. Results of Scala functions are objects, and only rows can be compared. The
   * computation therefore includes all nodes up to the conversion to rows.
   *
   * {{{
   *   SerializeFromObject       gives rows
   *   +- MapElements            gives objects
   *      +- MapGroups [value]   gives objects
   * }}}
   */
  def resultOf(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case GroupedMap(_) => Some(plan)
    case _: SerializeFromObject | _: AppendColumnsWithObject | _: MapElements =>
      resultOf(plan.children.head)
    case _: Filter | _: Project if returnsObjects(plan) => resultOf(plan.children.head)
    case _ => None
  }

  /** Whether `plan` emits the results of a grouped map as rows. */
  def returnsRows(plan: LogicalPlan): Boolean = !returnsObjects(plan) && resultOf(plan).isDefined

  /** Objects can have types that columns have too, such as `INT`. */
  private def returnsObjects(plan: LogicalPlan): Boolean = plan match {
    case _: ObjectProducer => true
    case _: Filter | _: Project => returnsObjects(plan.children.head)
    case _ => false
  }
}

/**
 * WindowStack: adjacent window nodes with the same partitioning. Spark makes one node per order.
 * The stack stores the rows of a partition once.
 */
object WindowStack {

  /** Returns the windows of the stack with `plan` on top, the lowest first. */
  def apply(plan: LogicalPlan): Seq[Window] = {
    val window = plan.asInstanceOf[Window]
    if (sharesRows(window)) apply(window.child) :+ window else Seq(window)
  }

  /** Whether `plan` is a window over the stored rows of the window below. */
  def sharesRows(plan: LogicalPlan): Boolean = plan match {
    case Window(_, _, _, BoundedWindow(_), _) => false
    case Window(_, partition, _, below: Window, _) =>
      partition.size == below.partitionSpec.size &&
      partition.zip(below.partitionSpec).forall { case (one, other) => one.semanticEquals(other) }
    case _ => false
  }
}

/**
 * BoundedWindow: window functions over rows up to a fixed distance from the current row. A change affects only the
 * results of the rows around it.
 */
object BoundedWindow {

  /** Partitions with a larger distance are recomputed as a whole. */
  private val LongestReach = 32

  /** Returns the distance in rows, if the state of `window` neither expires nor has a watermark. */
  def unapply(window: LogicalPlan): Option[Int] = window match {
    case Window(functions, partition, _, _, _)
        if !partition.exists(EventTime.columnOf(_).isDefined) &&
          SQLConf.get.getConf(ChangelogConf.STATE_TTL) == 0 =>
      val reaches = functions.flatMap(RunningWindow.calls).map(reach)
      Option.when(reaches.forall(_.isDefined))(reaches.flatten.max).filter(_ <= LongestReach)
    case _ => None
  }

  private def reach(call: WindowExpression): Option[Int] =
    (call.windowFunction, call.windowSpec.frameSpecification) match {
      case (function: FrameLessOffsetWindowFunction, _) =>
        if (function.ignoreNulls) None else distance(function.offset)
      case (_, SpecifiedWindowFrame(RowFrame, lower, upper)) =>
        for (before <- distance(lower); after <- distance(upper)) yield math.max(before, after)
      case _ => None
    }

  private def distance(bound: Expression): Option[Int] = bound match {
    case CurrentRow => Some(0)
    case _: SpecialFrameBoundary => None
    case constant if constant.foldable =>
      constant.eval() match {
        case rows: Int => Some(math.abs(rows)).filter(_ >= 0)
        case _ => None
      }
    case _ => None
  }
}

/**
 * RunningWindow: window functions over all rows up to the current row, in event-time order. A
 * row's result is final after the watermark passes the row, and no later result needs the row.
 */
object RunningWindow {

  /**
   * Returns the event time that orders the rows of `window`, if all functions are running
   * functions.
   */
  def unapply(window: Window): Option[Attribute] = window.orderSpec match {
    case Seq(SortOrder(time: Attribute, Ascending, _, _))
        if EventTime.columnOf(time).isDefined && AnyTimestampType.acceptsType(time.dataType) &&
          window.windowExpressions.flatMap(calls).forall(isRunning) =>
      Some(time)
    case _ => None
  }

  /** Returns the calls of window functions in an expression. */
  def calls(expression: Expression): Seq[WindowExpression] =
    expression.collect { case call: WindowExpression => call }

  /** Whether a call reads rows with an equal event time, which may arrive later. */
  def readsPeers(call: WindowExpression): Boolean = frame(call).exists(_.frameType == RangeFrame)

  private def isRunning(call: WindowExpression): Boolean =
    frame(call).exists(frame => frame.lower == UnboundedPreceding && frame.upper == CurrentRow) &&
      (call.windowFunction match {
        case AggregateExpression(_: DeclarativeAggregate, _, isDistinct, _, _) => !isDistinct
        case _: RowNumber | _: Rank | _: DenseRank => true
        case _ => false
      })

  private def frame(call: WindowExpression): Option[SpecifiedWindowFrame] =
    call.windowSpec.frameSpecification match {
      case frame: SpecifiedWindowFrame => Some(frame)
      case _ => None
    }
}
