// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.AnnotatedPlan
import org.apache.spark.sql.changelog.plans.{ChangelogTemporalFilter, TemporalFilter}

/**
 * Replaces a `TemporalFilter` by the operator that keeps rows until they come or go.
 * {{{
 *   TemporalFilter at > now() - 1h     =>   ChangelogTemporalFilter at > now() - 1h
 *   +- events                               +- events
 * }}}
 */
private[optimizer] object TemporalFilterRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan.isInstanceOf[TemporalFilter]

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val filter = node.plan.asInstanceOf[TemporalFilter]
    val input = inputs.head
    val rewritten = ChangelogTemporalFilter(
      filter.conditions,
      NodeRewrite.placeOfRows(node),
      RowKind.find(input.output),
      RowKind.newAttribute(),
      ids.next(),
      NodeRewrite.select(
        input,
        filter.child.output,
        withKind = RowKind.find(input.output).isDefined))
    NodeRewrite.select(rewritten, filter.output, withKind = !node.mode.isInsertOnly)
  }
}
