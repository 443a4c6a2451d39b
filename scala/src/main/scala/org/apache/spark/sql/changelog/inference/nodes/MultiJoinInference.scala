// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.UpdateKind.OnlyUpdateAfter
import org.apache.spark.sql.changelog.inference.keys.UpsertKeys
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, DescribeNode, EquiJoin}
import org.apache.spark.sql.changelog.plans.MultiJoin
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Inner joins on one key, done at once: what they send and ask is that of the joins they stand for,
 * one after the other. Each input is kept as a side of a join by the same key would be.
 */
object MultiJoinInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[MultiJoin]

  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = inputs.map(_.kinds).reduce(_ union _)

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    JoinInference.objection(joins(node), key)

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val join = node.plan.asInstanceOf[MultiJoin]
    val asked = demands(joins(node), demand, node.children.size).map {
      case Demand(OnlyUpdateAfter, Some(key), _) =>
        Demand.newRowsBy(key, s"${node.name} replaces rows by key ${DescribeNode.key(key)}")
      case _ => Demand.takesBack(join)
    }
    val inputs = node.children.zip(asked).map { case (input, demand) =>
      JoinState.input(input, demand)
    }
    val states = this.states(join, inputs)
    Decision(
      asked,
      Some(
        states.indices
          .map { index => s"${name(index)} ${states(index).form(isFirst(index))}" }
          .mkString(", ")),
      states.indices.flatMap(index => states(index).table(isFirst(index), name(index))))
  }

  /** How each input of a join of which all is known is kept: as the left side if it is the first. */
  def states(node: AnnotatedPlan): Seq[JoinState] =
    states(node.plan.asInstanceOf[MultiJoin], node.children.map(JoinState.input))

  private def states(join: MultiJoin, inputs: Seq[JoinState.Input]): Seq[JoinState] =
    inputs.indices.map { index =>
      val pair = join.withFirst(index)
      JoinState(pair, EquiJoin(pair), inputs.head, inputs(math.max(index, 1)))
    }

  def isFirst(index: Int): Boolean = index == 0

  private def name(index: Int): String = s"input ${index + 1}"

  /** The last of the joins of two, each above the one before. */
  private def joins(node: InferredNode): InferredNode =
    node.plan.asInstanceOf[MultiJoin].joins.zip(node.children.tail).foldLeft(node.children.head) {
      case (left, (join, right)) =>
        InferredNode(
          join,
          JoinInference,
          left.kinds.union(right.kinds),
          UpsertKeys(join, Seq(left.upsertKeys, right.upsertKeys)),
          isStatic = false,
          Seq(left, right))
    }

  /** What the joins of two ask of the `count` inputs. */
  private def demands(join: InferredNode, demand: Demand, count: Int): Seq[Demand] =
    if (count == 1) Seq(demand)
    else {
      val Seq(left, right) = JoinInference.decide(join, demand.on(join.kinds)).inputs
      demands(join.child, left, count - 1) :+ right
    }
}
