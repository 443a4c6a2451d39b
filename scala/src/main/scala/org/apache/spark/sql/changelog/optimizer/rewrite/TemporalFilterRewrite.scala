// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions.{Attribute, RowOrdering}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.analysis.AnnotatedPlan
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
      placedBy(node),
      RowKind.find(input.output),
      RowKind.newAttribute(),
      ids.next(),
      NodeRewrite.select(
        input,
        filter.child.output,
        withKind = RowKind.find(input.output).isDefined))
    NodeRewrite.select(rewritten, filter.output, withKind = !node.mode.isInsertOnly)
  }

  /** A key of the rows, or all columns, as far as they are equal exactly if their bytes are. */
  private def placedBy(node: AnnotatedPlan): Seq[Attribute] = {
    val columns = node.plan.output.filter { column =>
      RowOrdering.isOrderable(column.dataType) && UnsafeRowUtils.isBinaryStable(column.dataType)
    }
    val keys = node.upsertKeys.map(key => columns.filter(key.contains)).filter(_.nonEmpty)
    keys.headOption.getOrElse(columns)
  }
}
