// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Expand, Filter, LogicalPlan, Project, Sort}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.types.TimestampType

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.UpdateKind.{BeforeAndAfter, OnlyUpdateAfter}
import org.apache.spark.sql.changelog.inference.nodes.HistoryInference
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
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

/**
 * Opens an interval for each new version of a row, and closes the interval of the version before.
 *
 * {{{
 *   CommitHistory id      =>   Expand                   -U: -D open, +I closed    +U: +I open
 *   +- t  [I,UB,UA,D]          +- ChangelogNormalize id, with valid_from
 *                                 +- Project [..., batch time AS valid_from]
 *                                    +- ChangelogConsolidate id
 *                                       +- t  [I,UB,UA,D]
 * }}}
 *
 * The state holds the current version of each key. An interval without length is not emitted.
 */
private[optimizer] object HistoryRewrite extends RewriteOf[CommitHistory] {

  override protected def rewrite(history: CommitHistory, context: RewriteContext): LogicalPlan = {
    import context.{ids, input, node}
    val rows = history.child.output
    val key = node.ordered(HistoryInference.keyOf(history, node.children.head.upsertKeys))
    val now = Literal(batchTime * 1000, TimestampType)
    val netted = net(key, NodeRewrite.select(input, rows, withKind = true))
    val kind = RowKind.find(netted.output).get
    val from = Alias(now, "_from")()
    val position = Alias(Literal(0L), "_position")()
    val versions = ChangelogNormalize(
      UpsertFeed(key, sequence = Nil, position.toAttribute, rows :+ from.toAttribute, kind),
      BeforeAndAfter,
      RowKind.newAttribute(),
      ids.next(),
      Project(rows ++ Seq(from, kind, position), netted))
    intervals(history, versions, from.toAttribute, now)
  }

  /** Returns the start time of the batch, in ms; 0 while no query runs. */
  private def batchTime: Long = {
    val session = castToImpl(SparkSession.active)
    AssignStateInfo.batch(session).fold(0L)(_ => AssignStateInfo.timestamp(session))
  }

  /** Returns one change per key, without before images. */
  private def net(key: Seq[Attribute], changes: LogicalPlan): LogicalPlan =
    NodeRewrite.sending(OnlyUpdateAfter, ChangelogConsolidate.byKey(key, changes))

  private def intervals(
      history: CommitHistory,
      versions: ChangelogNormalize,
      from: Attribute,
      now: Literal): LogicalPlan = {
    val rows = history.child.output
    val isOld = RowKind.isRetraction(versions.outputKind)
    val openKind = If(isOld, Literal(RowKind.Delete), Literal(RowKind.Insert))
    val nothing = Literal(null, TimestampType)
    val open = rows ++ Seq(from, nothing, Literal(true), openKind, Literal(true))
    val closed = rows ++
      Seq(from, now, Literal(false), Literal(RowKind.Insert), And(isOld, LessThan(from, now)))
    val output = history.output.map(_.newInstance())
    val kind = RowKind.newAttribute()
    val isEmitted = AttributeReference("_emitted", Literal(true).dataType, nullable = false)()
    val expanded = Expand(Seq(open, closed), output ++ Seq(kind, isEmitted), versions)
    val renamed = history.output.zip(output).map { case (column, copy) =>
      Alias(copy, column.name)(exprId = column.exprId, explicitMetadata = Some(column.metadata))
    }
    Project(renamed :+ kind, Filter(isEmitted, expanded))
  }
}
