// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}

import org.apache.spark.sql.changelog.plans.{
  ChangelogStatic,
  FromChangelog,
  RowTtl,
  TemporalFilter,
  ToChangelog
}
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Anything that never changes while a query runs, as no stream lies below it. Spark computes it as
 * in a batch query; where its rows stand among changing ones they are inserted once.
 */
object StaticInference extends NodeInference {

  /** Whether nothing in `plan` changes: changes of a batch source make a table that does not. */
  def isStatic(plan: LogicalPlan): Boolean = isStatic(plan, plan.children.forall(isStatic))

  private[inference] def isStatic(plan: LogicalPlan, inputsAreStatic: Boolean): Boolean =
    plan match {
      case _: ToChangelog | _: ChangelogStatic => false
      // rows come and go as time passes, also over what never changes
      case _: TemporalFilter | _: RowTtl => false
      case source: FromChangelog => !source.streaming
      case leaf: LeafNode => !leaf.isStreaming
      case _ => inputsAreStatic
    }

  override def appliesTo(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[ChangelogStatic] || isStatic(plan)

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = ModifyKindSet.InsertOnly

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val strategy = if (node.isStatic) "static" else "insert in the first batch"
    Decision(node.children.map(_ => Demand.nothing), strategy = Some(strategy))
  }
}
