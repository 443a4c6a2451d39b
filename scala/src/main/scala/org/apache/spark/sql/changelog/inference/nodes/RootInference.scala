// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.UpdateKind.BeforeAndAfter
import org.apache.spark.sql.changelog.inference.{DescribeNode, InferenceErrors}
import org.apache.spark.sql.changelog.plans.ToChangelog
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * `to_changelog`, where the changes leave the query.
 *
 * In retract mode the reader gets both images. In upsert mode it replaces rows by a key, and the
 * query is first asked to leave the old ones out; where it can't, they come as far as here, and
 * what is left of a batch after netting it by the key goes on. In append mode nothing that was
 * emitted may ever change.
 */
object RootInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[ToChangelog]

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = {
    val (root, input) = (plan.asInstanceOf[ToChangelog], inputs.head)
    if (mode == OutputMode.Append && input.kinds.changesRows) {
      throw InferenceErrors.consumerCannotTakeChanges(
        root,
        input,
        "Use mode => 'retract' or mode => 'upsert', whose readers take changes.")
    }
    val halvesArrive =
      inputDemand(root, input).on(input.kinds).kind == BeforeAndAfter && !input.pairsUpdates
    if (halvesArrive) ModifyKindSet.All else input.kinds
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision =
    Decision(Seq(inputDemand(node.plan.asInstanceOf[ToChangelog], node.child)))

  /** What the reader of the changes wants of the root. */
  def readerDemand(root: ToChangelog, input: InferredNode): Demand = root.mode match {
    case OutputMode.Retract => Demand.bothImages("the reader takes all four row kinds")
    case OutputMode.Append => Demand.nothing
    case OutputMode.Upsert =>
      sinkKey(root, input).map(replacesBy).getOrElse(Demand.nothing)
  }

  private def inputDemand(root: ToChangelog, input: InferredNode): Demand = root.mode match {
    case OutputMode.Upsert =>
      sinkKey(root, input) match {
        case Some(key) if input.upsertKeys.contains(key) =>
          input.objection(key).map(Demand.bothImages).getOrElse(replacesBy(key))
        case Some(key) =>
          Demand.bothImages(
            s"an update can move a row from one ${DescribeNode.key(key)} to another")
        case None => Demand.nothing
      }
    case _ => readerDemand(root, input)
  }

  private def replacesBy(key: AttributeSet): Demand =
    Demand.newRowsBy(
      key,
      if (key.isEmpty) "the result is one row, which the sink replaces"
      else s"the sink replaces rows by key ${DescribeNode.key(key)}")

  /** The key the reader replaces rows by; none where there is nothing to replace. */
  private def sinkKey(root: ToChangelog, input: InferredNode): Option[AttributeSet] = {
    val wanted = AttributeSet(root.key)
    if (root.key.nonEmpty) {
      if (!input.upsertKeys.exists(_.subsetOf(wanted))) {
        throw InferenceErrors.keyNotUnique(root, input)
      }
      Some(wanted)
    } else if (input.kinds.isInsertOnly) {
      None
    } else {
      // Keys come smallest first. One by which old rows can be left out is better than a smaller.
      input.upsertKeys
        .find(input.objection(_).isEmpty)
        .orElse(input.upsertKeys.headOption)
        .orElse(throw InferenceErrors.keyMissing(root, input))
    }
  }
}
