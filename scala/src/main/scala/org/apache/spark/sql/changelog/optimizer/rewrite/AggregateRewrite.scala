// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, Project}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.keys.UpsertKeys
import org.apache.spark.sql.changelog.inference.nodes.RankInference
import org.apache.spark.sql.changelog.inference.{AggregateForm, AnnotatedPlan}
import org.apache.spark.sql.changelog.plans._

/**
 * Replaces an `Aggregate` by a [[ChangelogAggregate]].
 * {{{
 *   Aggregate [city], [city, sum(fare)]     =>   ChangelogAggregate [city], [city, sum(fare)]
 *   +- rides  [I,UB,UA,D]                        +- rides  [I,UB,UA,D]
 * }}}
 */
private[optimizer] object AggregateRewrite extends RewriteOf[Aggregate] {

  override protected def rewrite(aggregate: Aggregate, context: RewriteContext): LogicalPlan = {
    import context.{ids, input, node}
    val calls = AggregateCalls(aggregate)
    val inputKind = context.inputKind
    val keepsDistinct =
      calls.functions.exists(AggregateForm.keepsDistinct(_, inputKind.isDefined))
    val distinctId = Option.when(keepsDistinct)(ids.next())
    val rewritten = ChangelogAggregate(
      calls,
      inputKind,
      node.mode.updateKind,
      AggregateForm.waitsForWatermark(node),
      RowKind.newAttribute(),
      ids.next(),
      distinctId,
      input)
    context.select(rewritten)
  }
}

/**
 * Replaces a `Rank` by a [[ChangelogRank]], the operator for the best rows.
 *
 * {{{
 *   Rank row_number [upper(city)] [fare] 1..3   =>   ChangelogRank row_number [partition] [fare] 1..3
 *   +- rides  [I,UB,UA,D]                            +- Project [*, upper(city) AS partition]
 *                                                       +- rides  [I,UB,UA,D]
 * }}}
 */
private[optimizer] object RankRewrite extends RewriteOf[Rank] {

  override protected def rewrite(rank: Rank, context: RewriteContext): LogicalPlan = {
    import context.{ids, input, node}
    val partition = rank.partitionBy match {
      case Seq(salt @ Salt(_, _)) =>
        Seq(Alias(salt, Salt.Name)(explicitMetadata = Some(Salt.metadata)))
      case other => NodeRewrite.partitionColumns(other, input)
    }
    val made = partition.collect { case alias: Alias => alias }
    val child = if (made.isEmpty) input else Project(input.output ++ made, input)
    val ranking = Ranking(
      rank.function,
      partition.map(_.toAttribute),
      rank.orderBy.filterNot(_.child.foldable),
      rank.start,
      rank.end,
      rank.rankNumber,
      RankInference.strategy(rank, node),
      columns(node.children.head, node.children.head.requiredKey.toSeq.flatten),
      UpsertKeys.slotKey(rank).isDefined,
      pairBy(node),
      node.mode.updateKind,
      RowKind.find(child.output))
    val rewritten =
      ChangelogRank(ranking, RowKind.newAttribute(), ids.next(), child)
    context.select(rewritten)
  }

  /**
   * Returns the key by which the consumer replaces rows, or any key. The key identifies a row,
   * not its slot.
   */
  private def pairBy(node: AnnotatedPlan): Option[Seq[Attribute]] = {
    val input = node.children.head
    node.requiredKey
      .orElse(input.upsertKeys.headOption)
      .map(key => columns(input, key.toSeq))
  }

  private def columns(node: AnnotatedPlan, key: Seq[Attribute]): Seq[Attribute] =
    node.plan.output.filter(column => key.exists(_.exprId == column.exprId))
}
