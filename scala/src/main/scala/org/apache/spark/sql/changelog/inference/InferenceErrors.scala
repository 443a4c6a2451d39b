// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, Last}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.ModifyKindSet
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.inference.nodes.InferredNode
import org.apache.spark.sql.changelog.plans.ToChangelog

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
      Map(
        "consumer" -> DescribeNode.short(consumer),
        "kinds" -> input.kinds.diff(ModifyKindSet.InsertOnly).words,
        "producer" -> input.producer.name,
        "advice" -> advice))

  /** The error for rows of `node` that can change after the watermark has passed `column`. */
  def resultNotFinal(column: String, node: String, reason: String): AnalysisException =
    analysis(
      "CHANGELOG_RESULT_NOT_FINAL",
      Map("column" -> column, "node" -> node, "reason" -> reason))

  def keyMissing(root: ToChangelog, input: InferredNode): AnalysisException =
    analysis(
      "CHANGELOG_KEY_MISSING",
      Map("root" -> DescribeNode.short(root), "node" -> input.name))

  def keyNotUnique(root: ToChangelog, input: InferredNode): AnalysisException =
    analysis(
      "CHANGELOG_KEY_NOT_UNIQUE",
      Map(
        "root" -> DescribeNode.short(root),
        "key" -> DescribeNode.key(root.key),
        "keys" -> (if (input.upsertKeys.isEmpty) "none"
                   else input.upsertKeys.map(key => DescribeNode.key(key)).mkString(" or "))))

  def nodeNotSupported(
      plan: LogicalPlan,
      reason: String = "the effect of the node on changing rows is not known",
      advice: String = "Apply the node before from_changelog, or to the output of to_changelog.")
      : AnalysisException =
    analysis(
      "CHANGELOG_NODE_NOT_SUPPORTED",
      Map("node" -> DescribeNode.short(plan), "reason" -> reason, "advice" -> advice))

  def pivotWithoutValues(column: String): AnalysisException =
    analysis("CHANGELOG_PIVOT_WITHOUT_VALUES", Map("column" -> column))

  def nondeterministicExpression(plan: LogicalPlan, expression: String): AnalysisException =
    analysis(
      "CHANGELOG_NONDETERMINISTIC_EXPRESSION",
      Map("expression" -> expression, "node" -> DescribeNode.short(plan)))

  def passingTime(plan: LogicalPlan, expression: String): AnalysisException =
    analysis(
      "CHANGELOG_PASSING_TIME",
      Map("expression" -> expression, "node" -> DescribeNode.short(plan)))

  /** `function` is [[First]] or [[Last]]. */
  def rowOrderUnknown(plan: LogicalPlan, function: AggregateFunction): AnalysisException = {
    val value = DescribeNode.expression(function.children.head)
    analysis(
      "CHANGELOG_ROW_ORDER_UNKNOWN",
      Map(
        "node" -> DescribeNode.short(plan),
        "function" -> function.prettyName,
        "value" -> value,
        "ordered" -> (if (function.isInstanceOf[Last]) s"max_by($value, t)"
                      else s"min_by($value, t)")))
  }

  def subqueryNotSupported(plan: LogicalPlan, subquery: String): AnalysisException =
    analysis(
      "CHANGELOG_SUBQUERY_NOT_SUPPORTED",
      Map("node" -> DescribeNode.short(plan), "subquery" -> subquery))

  def notExecutableYet(node: String, place: String, what: String): AnalysisException =
    analysis(
      "CHANGELOG_NOT_EXECUTABLE_YET",
      Map("node" -> node, "place" -> place, "what" -> what))
}
