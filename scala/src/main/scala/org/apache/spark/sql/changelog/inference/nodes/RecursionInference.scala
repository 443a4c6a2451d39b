// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.plans.{RecursiveQuery, StateTable}
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * A recursive query: any row of its inputs may bear on any row of its result. The rows of all inputs
 * are kept, and where one changes the result over the old rows is compared with that over the new.
 */
object RecursionInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[RecursiveQuery]

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = ModifyKindSet.All

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision = Decision(
    node.children.map(_ => Demand.takesBack(node.plan)),
    Some("recompute everything"),
    Seq(
      StateTable(
        "rows",
        Seq("input", "row"),
        "count",
        StateTable.unbounded)),
    Seq("a batch that changes an input runs the recursion over all old and over all new rows"))
}
