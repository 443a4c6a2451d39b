// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}

import org.apache.spark.sql.changelog.inference.nodes.StaticInference
import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * Keeps rules for changelogs off what never changes: there limits stay limits, and sorts matter.
 * {{{
 *   Join                        Join                      Join
 *   :- orders                   :- orders                 :- orders
 *   +- GlobalLimit 3     =>     +- HiddenRows     =>      +- GlobalLimit 3
 *      +- Sort [rate]                                        +- Sort [rate]
 * }}}
 */
private[optimizer] object HideStaticRows {

  /** What `rules` make of `plan`, with its static parts as they were. */
  def during(plan: LogicalPlan)(rules: LogicalPlan => LogicalPlan): LogicalPlan =
    rules(hide(plan)).transformUp { case HiddenRows(hidden) => hidden }

  private def hide(plan: LogicalPlan): LogicalPlan = plan match {
    case source: FromChangelog if source.streaming => source
    case _ if StaticInference.isStatic(plan) => HiddenRows(plan)
    case _ => plan.mapChildren(hide)
  }
}

/** Stands for static rows. */
private[optimizer] case class HiddenRows(hidden: LogicalPlan) extends LeafNode {
  override def output: Seq[Attribute] = hidden.output
  override def maxRows: Option[Long] = hidden.maxRows
}
