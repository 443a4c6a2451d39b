// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, TypedFilter}

import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Filters, each row for itself.
 *
 * A new version of a row may fail a condition that the old one met. A consumer that was sent only
 * new versions would never hear that the row is gone. So the old version is needed, unless the
 * condition reads nothing but the key, for then both versions give the same answer.
 */
object FilterInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[Filter] || plan.isInstanceOf[TypedFilter]

  override def forwards: Boolean = true

  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = inputs.head.kinds

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    node.plan match {
      case filter: Filter if filter.condition.references.subsetOf(key) =>
        node.child.objection(key)
      case _ => Some(s"${node.name} must see the old row to know that it leaves")
    }

  override def decide(node: InferredNode, demand: Demand): Decision = Decision(Seq(demand))
}
