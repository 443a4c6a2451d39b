// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}

import org.apache.spark.sql.changelog.UpdateKind
import org.apache.spark.sql.changelog.plans.{ChangelogRank, RankFunction, RankStrategy}

/** Which rows are shown and how they are emitted; see [[ChangelogRank]]. */
final case class Ranking(
    function: RankFunction,
    partition: Seq[Attribute],
    order: Seq[SortOrder],
    start: Long,
    end: Long,
    number: Option[Attribute],
    strategy: RankStrategy,
    replaceBy: Seq[Attribute],
    bySlot: Boolean,
    pairBy: Option[Seq[Attribute]],
    updateKind: UpdateKind,
    columns: Seq[Attribute]) {

  val layout: RankLayout = RankLayout(partition, columns, order, strategy)
}

object Ranking {
  def apply(rank: ChangelogRank): Ranking =
    Ranking(
      rank.function,
      rank.partition,
      rank.order,
      rank.start,
      rank.end,
      rank.rankNumber,
      rank.strategy,
      rank.replaceBy,
      rank.bySlot,
      rank.pairBy,
      rank.updateKind,
      rank.columns)
}
