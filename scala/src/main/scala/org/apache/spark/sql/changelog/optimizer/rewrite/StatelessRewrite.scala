// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, SignedMetrics}

/**
 * Lets the row kind pass through nodes that treat each row by itself.
 *
 * {{{
 *   Project [a + 1 AS b]     =>   Project [a + 1 AS b, _row_kind]
 *   +- changes                    +- changes
 * }}}
 */
private[optimizer] object StatelessRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = true

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val kind = inputs.headOption.flatMap(input => RowKind.find(input.output))
    node.plan match {
      case project: Project =>
        Project(project.projectList ++ kind, inputs.head)
      case expand: Expand =>
        Expand(expand.projections.map(_ ++ kind), expand.output ++ kind, inputs.head)
      case generate: Generate =>
        generate.copy(unrequiredChildIndex = leftOut(generate, inputs.head), child = inputs.head)
      case metrics: CollectMetrics =>
        val measured = kind.fold(metrics.metrics)(SignedMetrics(metrics, _))
        metrics.copy(metrics = measured, child = inputs.head)
      case other => other.withNewChildren(inputs)
    }
  }

  /** Columns that a generator does not pass on: the row kind may stand before them. */
  private def leftOut(generate: Generate, input: LogicalPlan): Seq[Int] = {
    val passedOn = AttributeSet(generate.requiredChildOutput)
    val columns = generate.child.outputSet -- passedOn
    input.output.indices.filter(index => columns.contains(input.output(index)))
  }
}
