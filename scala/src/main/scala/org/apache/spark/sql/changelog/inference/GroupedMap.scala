// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical._

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
