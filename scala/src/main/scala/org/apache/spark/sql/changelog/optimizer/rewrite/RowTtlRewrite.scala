// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.AnnotatedPlan
import org.apache.spark.sql.changelog.plans.{ChangelogRowTtl, RowTtl}

/**
 * Replaces a `RowTtl` by the operator that keeps rows until they leave.
 * {{{
 *   RowTtl 3 days     =>   ChangelogRowTtl 3 days
 *   +- orders              +- orders
 * }}}
 */
private[optimizer] object RowTtlRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan.isInstanceOf[RowTtl]

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val hint = node.plan.asInstanceOf[RowTtl]
    val inputKind = RowKind.find(inputs.head.output)
    val rewritten = ChangelogRowTtl(
      hint.ttl,
      NodeRewrite.placeOfRows(node),
      inputKind,
      RowKind.newAttribute(),
      ids.next(),
      NodeRewrite.select(inputs.head, hint.child.output, withKind = inputKind.isDefined))
    NodeRewrite.select(rewritten, hint.output, withKind = true)
  }
}
