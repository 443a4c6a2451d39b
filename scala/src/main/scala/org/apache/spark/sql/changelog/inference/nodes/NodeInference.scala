// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import scala.reflect.{ClassTag, classTag}

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.UpdateKind.{BeforeAndAfter, NoUpdate, OnlyUpdateAfter}
import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.plans.StateTable
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode, UpdateKind}

/**
 * NodeInference: the rule of a kind of node. A rule derives the node's row kinds and demands from
 * the inputs.
 */
abstract class NodeInference[P <: LogicalPlan: ClassTag] {

  def appliesTo(plan: LogicalPlan): Boolean = classTag[P].runtimeClass.isInstance(plan)

  /**
   * Whether the node forwards the changes of its input. An error about the changes then names the
   * origin of the changes.
   */
  def forwards: Boolean = false

  /** Returns the row kinds that the node emits. Fails for unsupported inputs. */
  def kinds(plan: P, inputs: NodeInputs): ModifyKindSet

  final def kindsOf(plan: LogicalPlan, inputs: NodeInputs): ModifyKindSet =
    kinds(plan.asInstanceOf[P], inputs)

  /**
   * Returns the reason why the node cannot omit before images for a consumer that replaces rows
   * by `key`. `key` is an upsert key of the node. Called only for nodes with updates.
   */
  def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  /**
   * Whether every before image comes with its after image. If not, a lone `-U` deletes a row and
   * a lone `+U` inserts one. The root must then emit `-D` and `+I`.
   */
  def pairsUpdates(node: InferredNode): Boolean =
    !forwards || node.children.forall(_.pairsUpdates)

  /** Returns the node's demands on the inputs to satisfy `demand`, and the node's strategy. */
  def decide(node: InferredNode, demand: Demand): Decision
}

/** The inputs of a node, in a query with an output mode. */
final case class NodeInputs(nodes: Seq[InferredNode], mode: OutputMode) {

  def head: InferredNode = nodes.head

  /** Whether the query emits inserts only, and waits for final rows. */
  def appends: Boolean = mode == OutputMode.Append
}

/**
 * The properties of a node known on the way up, before the consumer is known.
 *
 * @param isStatic
 *   whether the node never emits changes, because no stream is below it
 */
final case class InferredNode(
    plan: LogicalPlan,
    rule: NodeInference[_],
    kinds: ModifyKindSet,
    upsertKeys: Seq[AttributeSet],
    isStatic: Boolean,
    children: Seq[InferredNode]) {

  def name: String = DescribeNode.short(plan)

  def child: InferredNode = children.head

  /** Returns the reason why updates by `key` need before images, if so. */
  def objection(key: AttributeSet): Option[String] =
    if (kinds.update) rule.objection(this, key) else None

  def pairsUpdates: Boolean = !kinds.update || rule.pairsUpdates(this)

  /** Returns the origin of the node's changes, for errors. */
  def producer: InferredNode =
    if (!rule.forwards) this
    else children.find(_.kinds.changesRows).map(_.producer).getOrElse(this)
}

/**
 * Demand: the form of updates requested from an input.
 *
 * Updates without before images require a key: two rows with an equal key are versions of one
 * row. Some upsert keys of a stream permit such updates, and some do not. For example, a Top-N
 * with rank numbers replaces rows by slot or by row. The key is therefore part of the demand.
 *
 * @param reason
 *   the reason, as a clause: "... because `reason`"
 */
final case class Demand(kind: UpdateKind, key: Option[AttributeSet], reason: String) {

  /** Returns the demand on a node with these kinds. A node without updates gets no demand. */
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

  /** Returns the demand of an operator without stored old versions of input rows. */
  def bothImagesFor(consumer: LogicalPlan): Demand =
    bothImages(s"${DescribeNode.short(consumer)} must retract the old row")
}

/** Decision: a node's demands on the inputs, and the node's description in EXPLAIN. */
final case class Decision(
    inputs: Seq[Demand],
    strategy: Option[String] = None,
    state: Seq[StateTable] = Nil,
    reasons: Seq[String] = Nil)
