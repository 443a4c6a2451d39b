// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.AnnotatedPlan
import org.apache.spark.sql.changelog.plans.{ChangelogEmitOnClose, EmitOnClose}

/**
 * Replaces an `EmitOnClose` by the operator that keeps rows until the watermark has passed them.
 * {{{
 *   EmitOnClose w.end                     =>   ChangelogEmitOnClose w.end   [I]
 *   +- best of each window                     +- best of each window       [I,UB,UA,D]
 * }}}
 */
private[optimizer] object EmitOnCloseRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan.isInstanceOf[EmitOnClose]

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val closing = node.plan.asInstanceOf[EmitOnClose]
    val rows = NodeRewrite.select(inputs.head, closing.child.output, withKind = true)
    ChangelogEmitOnClose(
      closing.times,
      closing.delays,
      NodeRewrite.placeOfRows(node),
      RowKind.find(rows.output).get,
      ids.next(),
      rows)
  }
}
