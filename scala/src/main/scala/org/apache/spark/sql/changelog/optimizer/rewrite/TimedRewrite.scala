// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Sort}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.plans._

/**
 * Replaces a `TemporalFilter` by the operator that stores rows until they enter or leave.
 *
 * {{{
 *   TemporalFilter at > now() - 1h     =>   ChangelogTemporalFilter at > now() - 1h
 *   +- events                               +- events
 * }}}
 */
private[optimizer] object TemporalFilterRewrite extends RewriteOf[TemporalFilter] {

  override protected def rewrite(filter: TemporalFilter, context: RewriteContext): LogicalPlan = {
    val inputKind = context.inputKind
    val rewritten = ChangelogTemporalFilter(
      filter.conditions,
      NodeRewrite.placeOfRows(context.node),
      inputKind,
      RowKind.newAttribute(),
      context.ids.next(),
      NodeRewrite.select(context.input, filter.child.output, withKind = inputKind.isDefined))
    context.select(rewritten)
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
private[optimizer] object RowTtlRewrite extends RewriteOf[RowTtl] {

  override protected def rewrite(hint: RowTtl, context: RewriteContext): LogicalPlan = {
    val inputKind = context.inputKind
    val rewritten = ChangelogRowTtl(
      hint.ttl,
      NodeRewrite.placeOfRows(context.node),
      inputKind,
      RowKind.newAttribute(),
      context.ids.next(),
      NodeRewrite.select(context.input, hint.child.output, withKind = inputKind.isDefined))
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
private[optimizer] object EmitRewrite extends RewriteOf[Emit] {

  override protected def rewrite(emit: Emit, context: RewriteContext): LogicalPlan = {
    val rows = NodeRewrite.select(context.input, emit.child.output, withKind = true)
    val rewritten = ChangelogEmit(
      emit.emission,
      emit.times,
      emit.delays,
      inOneTask = emit.order.nonEmpty,
      NodeRewrite.placeOfRows(context.node),
      RowKind.find(rows.output),
      RowKind.newAttribute(),
      context.ids.next(),
      rows)
    val emitted = context.select(rewritten)
    if (emit.order.isEmpty) emitted else Sort(emit.order, global = false, emitted)
  }
}
