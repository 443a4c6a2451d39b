// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import java.util.IdentityHashMap

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.AnnotatedPlan
import org.apache.spark.sql.changelog.plans.{ChangelogOutput, WatchChanges, WatchedChanges}

/**
 * Lets the rows be noted that the nodes of a query send, each under its place in the tree that EXPLAIN
 * shows.
 * {{{
 *   ChangelogOutput                     WatchChanges 0
 *   +- ChangelogAggregate [cnt]         +- ChangelogOutput
 *      +- ChangelogAggregate [word]        +- WatchChanges 1
 *                                   =>        +- ChangelogAggregate [cnt]
 *                                                +- WatchChanges 2
 *                                                   +- ChangelogAggregate [word]
 * }}}
 * Rows that are read again are noted where they are computed.
 */
private[optimizer] class WatchNodes(watched: WatchedChanges, root: AnnotatedPlan) {
  private val places = new IdentityHashMap[AnnotatedPlan, Int]
  number(root)

  private def number(node: AnnotatedPlan): Unit = {
    places.put(node, places.size)
    if (node.shared.forall(_.computes)) node.children.foreach(number)
  }

  /** What a node was rewritten to. */
  def apply(node: AnnotatedPlan, rewritten: LogicalPlan): LogicalPlan =
    if (!places.containsKey(node)) rewritten
    else watch(places.get(node), node.plan.output, RowKind.find(rewritten.output), rewritten)

  /** The root of the query. */
  def output(rewritten: ChangelogOutput): LogicalPlan = {
    watched.explainedBy(rewritten.explanation)
    watch(0, rewritten.columns, Some(rewritten.changeType), rewritten)
  }

  private def watch(
      place: Int,
      columns: Seq[Attribute],
      kind: Option[Attribute],
      rewritten: LogicalPlan): LogicalPlan = {
    val noted = columns.flatMap(column => rewritten.output.find(_.exprId == column.exprId))
    WatchChanges(watched, place, noted ++ kind, rewritten)
  }
}
