// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.inference.keys.ProjectKeys
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Nodes that turn each row into rows of the same kind, looking at nothing else: projections,
 * generators, grouping sets' copies, watermarks, exchanges, and a sort, which means nothing for a
 * changelog and is dropped.
 *
 * They ask of their input what their consumer asks of them, by the same key, as far as they keep
 * it. An exchange keeps every key: where versions of one row overtake each other on the way, a key
 * is lost by it, but here a batch's changes are applied as a whole, so there is no overtaking.
 */
object StatelessInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan match {
    case generate: Generate => !StockStatefulInference.appliesTo(generate)
    case _: Project | _: Expand | _: EventTimeWatermark => true
    case _: UpdateEventTimeWatermarkColumn | _: RepartitionOperation | _: RebalancePartitions =>
      true
    case _: Sort | _: Sample | _: CollectMetrics | _: SubqueryAlias | _: View | _: Subquery |
        _: ResolvedHint =>
      true
    case _: DeserializeToObject | _: SerializeFromObject | _: MapElements => true
    case _: AppendColumns | _: AppendColumnsWithObject | _: BaseEvalPython => true
    case _: BaseEvalPythonUDTF => true
    case _ => false
  }

  override def forwards: Boolean = true

  /** A generator may give another number of rows for the new version than for the old. */
  override def pairsUpdates(node: InferredNode): Boolean = node.plan match {
    case _: Generate | _: BaseEvalPythonUDTF => false
    case _ => super.pairsUpdates(node)
  }

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = inputs.head.kinds

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    (node.plan, ProjectKeys.inputKey(node.plan, key)) match {
      case (_: CollectMetrics, _) => Some(s"${node.name} takes old rows off what it measures")
      case (_, Some(inputKey)) => node.child.objection(inputKey)
      case (_, None) =>
        Some(s"${node.name} does not pass on the key ${DescribeNode.key(key)} as it is")
    }

  override def decide(node: InferredNode, demand: Demand): Decision =
    Decision(
      Seq(demand.copy(key = demand.key.flatMap(ProjectKeys.inputKey(node.plan, _)))),
      reasons = node.plan match {
        case _: Sort => Seq("dropped: a changelog has no order")
        case _: CollectMetrics if node.kinds.changesRows =>
          Seq("measures by how much each batch moves its counts and sums")
        case _ => Nil
      })
}
