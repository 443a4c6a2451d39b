// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, Last}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.ModifyKindSet
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.inference.nodes.InferredNode

/** The errors of inference: queries that `to_changelog` cannot support. */
object InferenceErrors {

  /**
   * The error for an insert-only consumer over changing rows. `input` is the origin of the
   * changes.
   */
  def consumerCannotTakeChanges(
      consumer: LogicalPlan,
      input: InferredNode,
      advice: String): AnalysisException =
    analysis(
      "CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES",
      "consumer" -> DescribeNode.short(consumer),
      "kinds" -> input.kinds.diff(ModifyKindSet.InsertOnly).words,
      "producer" -> input.producer.name,
      "advice" -> advice)

  def nodeNotSupported(
      plan: LogicalPlan,
      reason: String = "the effect of the node on changing rows is not known",
      advice: String = "Apply the node before from_changelog, or to the output of to_changelog.")
      : AnalysisException =
    analysis(
      "CHANGELOG_NODE_NOT_SUPPORTED",
      "node" -> DescribeNode.short(plan),
      "reason" -> reason,
      "advice" -> advice)

  /** `function` is [[First]] or [[Last]]. */
  def rowOrderUnknown(plan: LogicalPlan, function: AggregateFunction): AnalysisException = {
    val value = DescribeNode.expression(function.children.head)
    analysis(
      "CHANGELOG_ROW_ORDER_UNKNOWN",
      "node" -> DescribeNode.short(plan),
      "function" -> function.prettyName,
      "value" -> value,
      "ordered" -> s"${if (function.isInstanceOf[Last]) "max_by" else "min_by"}($value, t)")
  }
}
