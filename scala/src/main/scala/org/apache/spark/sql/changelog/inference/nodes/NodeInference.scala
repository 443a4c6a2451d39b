// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.UpdateKind.{BeforeAndAfter, NoUpdate, OnlyUpdateAfter}
import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.plans.StateTable
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode, UpdateKind}

/** The rule of one kind of node: what it produces, and what it needs of its inputs for that. */
trait NodeInference {

  def appliesTo(plan: LogicalPlan): Boolean

  /**
   * Whether the node hands its input's changes on as they come, so that an error about them names
   * the node that made them.
   */
  def forwards: Boolean = false

  /** The kinds of changes that the node emits. Refuses inputs it can't take. */
  def kinds(plan: LogicalPlan, inputs: Seq[InferredNode], mode: OutputMode): ModifyKindSet

  /**
   * Why the node can't leave out before images for a consumer that replaces rows by `key`, one of
   * the node's upsert keys. Asked only of nodes that update.
   */
  def objection(node: InferredNode, key: AttributeSet): Option[String]

  /**
   * Whether every old row the node sends comes with the new one. If not, a lone `-U` takes a row
   * away and a lone `+U` brings one, so that the root must call them `-D` and `+I`.
   */
  def pairsUpdates(node: InferredNode): Boolean =
    !forwards || node.children.forall(_.pairsUpdates)

  /** The node's demands on its inputs so that it meets `demand`, and its strategy. */
  def decide(node: InferredNode, demand: Demand): Decision
}

/**
 * A node as it is known on the way up, before anything is known about its consumer.
 *
 * @param isStatic
 *   whether no changes can come from it, as no stream lies below
 */
final case class InferredNode(
    plan: LogicalPlan,
    rule: NodeInference,
    kinds: ModifyKindSet,
    upsertKeys: Seq[AttributeSet],
    isStatic: Boolean,
    children: Seq[InferredNode]) {

  def name: String = DescribeNode.short(plan)

  def child: InferredNode = children.head

  /** Why updates can't come without before images by `key`; none if they can, or if none come. */
  def objection(key: AttributeSet): Option[String] =
    if (kinds.update) rule.objection(this, key) else None

  def pairsUpdates: Boolean = !kinds.update || rule.pairsUpdates(this)

  /** The node that first makes the changes this one sends, as errors name it. */
  def producer: InferredNode =
    if (!rule.forwards) this
    else children.find(_.kinds.changesRows).map(_.producer).getOrElse(this)
}

/**
 * How a consumer wants the updates of one input.
 *
 * Updates without before images only make sense by a key: two rows that agree on it are versions
 * of one row. A stream can be fit for one of its keys and not for another (a Top-N with rank
 * numbers can be replaced slot by slot or row by row), so the key is part of the demand.
 *
 * @param reason
 *   why, as a clause: "... because `reason`"
 */
final case class Demand(kind: UpdateKind, key: Option[AttributeSet], reason: String) {

  /** The demand on a node with these kinds: a node without updates sends none. */
  def on(kinds: ModifyKindSet): Demand = if (kinds.update) this else Demand.nothing

  def text: Option[String] = kind match {
    case NoUpdate => None
    case OnlyUpdateAfter => Some(s"no -U: $reason")
    case BeforeAndAfter => Some(s"sends -U because $reason")
  }
}

object Demand {
  val nothing: Demand = Demand(NoUpdate, None, "")

  def bothImages(reason: String): Demand = Demand(BeforeAndAfter, None, reason)

  def newRowsBy(key: AttributeSet, reason: String): Demand =
    Demand(OnlyUpdateAfter, Some(key), reason)

  /** The demand of an operator that keeps no old version of its input's rows. */
  def takesBack(consumer: LogicalPlan): Demand =
    bothImages(s"${DescribeNode.short(consumer)} must take the old row back")
}

/** The demands of a node on its inputs, and its description in EXPLAIN. */
final case class Decision(
    inputs: Seq[Demand],
    strategy: Option[String] = None,
    state: Seq[StateTable] = Nil,
    reasons: Seq[String] = Nil)
