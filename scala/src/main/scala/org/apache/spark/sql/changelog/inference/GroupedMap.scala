// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression,
  DeclarativeAggregate
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.AnyTimestampType

import org.apache.spark.sql.changelog.inference.times.EventTime

/**
 * A function of the user that is given all rows of each group: of one input, or of two that are
 * grouped alike.
 *
 * @param groups
 *   what each input is grouped by
 * @param orders
 *   the order in which the function is to see the rows of each input
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
   * The map whose results `plan` gives, if it does, as they are or after functions that treat each
   * by itself. Results of Scala functions are objects, and only rows can be compared: that is why
   * all up to where they are rows again is one computation.
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
    case _: Filter | _: Project if givesObjects(plan) => resultOf(plan.children.head)
    case _ => None
  }

  /** Whether the rows of `plan` are what a map's results come out as. */
  def givesRowsOf(plan: LogicalPlan): Boolean = !givesObjects(plan) && resultOf(plan).isDefined

  /** Objects can be of types that columns have too, such as `INT`. */
  private def givesObjects(plan: LogicalPlan): Boolean = plan match {
    case _: ObjectProducer => true
    case _: Filter | _: Project => givesObjects(plan.children.head)
    case _ => false
  }
}

/**
 * Window nodes directly above each other that partition their rows alike. Spark makes one node per
 * order; together they need the rows of a partition only once.
 */
object WindowStack {

  /** The windows that share their rows with `plan`, itself included, the lowest first. */
  def apply(plan: LogicalPlan): Seq[Window] = {
    val window = plan.asInstanceOf[Window]
    if (sharesRows(window)) apply(window.child) :+ window else Seq(window)
  }

  /** Whether `plan` is a window over the rows that the window below it keeps. */
  def sharesRows(plan: LogicalPlan): Boolean = plan match {
    case Window(_, partition, _, below: Window, _) =>
      partition.size == below.partitionSpec.size &&
      partition.zip(below.partitionSpec).forall { case (one, other) => one.semanticEquals(other) }
    case _ => false
  }
}

/**
 * Window functions over all rows up to the current one, in the order of event time: what they give
 * for a row is certain once the watermark has passed it, and needs no other row again.
 */
object RunningWindow {

  /** The event time that orders the rows of `window`, if all its functions are of this kind. */
  def unapply(window: Window): Option[Attribute] = window.orderSpec match {
    case Seq(SortOrder(time: Attribute, Ascending, _, _))
        if EventTime.columnOf(time).isDefined && AnyTimestampType.acceptsType(time.dataType) &&
          window.windowExpressions.flatMap(calls).forall(isRunning) =>
      Some(time)
    case _ => None
  }

  /** The calls of window functions in an expression. */
  def calls(expression: Expression): Seq[WindowExpression] =
    expression.collect { case call: WindowExpression => call }

  /** Whether a call sees the rows with the same time as its own, which may come later. */
  def seesPeers(call: WindowExpression): Boolean = frame(call).exists(_.frameType == RangeFrame)

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
