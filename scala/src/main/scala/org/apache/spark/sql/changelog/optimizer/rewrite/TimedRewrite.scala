// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Sort}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.AnnotatedPlan
import org.apache.spark.sql.changelog.plans._

/**
 * Replaces a `TemporalFilter` by the operator that stores rows until they enter or leave.
 *
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

/**
 * Replaces a `RowTtl` by the operator that stores rows until they expire.
 *
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

/**
 * Replaces an `Emit` by the operator that holds changes.
 *
 * {{{
 *   Emit on close w.end         =>   ChangelogEmit on close w.end   [I]
 *   +- best of each window           +- best of each window         [I,UB,UA,D]
 * }}}
 */
private[optimizer] object EmitRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan.isInstanceOf[Emit]

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val emit = node.plan.asInstanceOf[Emit]
    val rows = NodeRewrite.select(inputs.head, emit.child.output, withKind = true)
    val rewritten = ChangelogEmit(
      emit.emission,
      emit.times,
      emit.delays,
      inOneTask = emit.order.nonEmpty,
      NodeRewrite.placeOfRows(node),
      RowKind.find(rows.output).get,
      RowKind.newAttribute(),
      ids.next(),
      rows)
    val emitted = NodeRewrite.select(rewritten, emit.output, withKind = !node.mode.isInsertOnly)
    if (emit.order.isEmpty) emitted else Sort(emit.order, global = false, emitted)
  }
}
