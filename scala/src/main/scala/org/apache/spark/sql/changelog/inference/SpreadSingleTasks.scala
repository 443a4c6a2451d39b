// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.inference.nodes.{InferredNode, JoinState, RankInference}
import org.apache.spark.sql.changelog.plans.{Rank, Salt, SkewedSide}

/**
 * Divides the work of a single task among several tasks, for ranks and joins without a key.
 *
 * {{{
 *   Rank rank [] [price] 6..15          Rank rank [] [price] 6..15
 *   +- bids  [I,UB,UA,D]          =>    +- Rank rank [salt(id)] [price] 1..15
 *                                          +- bids  [I,UB,UA,D]
 *
 *   Join a.x < b.y                =>    Join a.x < b.y, of a row of a with the copy of b that has its salt
 * }}}
 *
 * A rank in two levels gives the result of a single level. Let n be the last kept rank, and let
 * the order decide which row is better. For `row_number`, both levels break ties by the remaining
 * columns. Only equal rows tie then, and equal rows have equal salts.
 *
 *   - `row_number`, `rank`: the rank of a row is 1 plus the number of better rows. Among the
 *     rows of a salt, the number is at most as large. A row within n therefore passes the lower
 *     level.
 *   - `dense_rank`: the rank is 1 plus the number of better values. In a subset of the rows,
 *     the number is at most as large.
 *   - Every row better than a row within n is within n too and passes the lower level. The row
 *     within n therefore has its true rank above. If a row beyond n passes, the n first rows,
 *     or the rows of the n best values, pass too. The row is therefore beyond n above as well.
 *
 * Rows with incomparable columns tie in an arbitrary order, as in a single level.
 *
 * The upper level receives n rows of each salt, so two levels pay off only for a small n. With a
 * state TTL, the rank keeps a single level: a lower level would forget different rows.
 *
 * A join spreads one side: the left side if the join type permits, else the right side. A side
 * with few rows, like a global aggregate, is not spread. The opposite side is stored once per
 * salt. The choice ignores statistics, because statistics change and stored rows must be found
 * again.
 *
 * @param salts
 *   the salts among which rows are divided; empty for one partition
 */
private[inference] class SpreadSingleTasks(salts: Seq[Int]) {
  import SpreadSingleTasks._

  /** Returns the lower level of a rank, if the rank gets two levels. */
  def below(rank: Rank, input: InferredNode): Option[Rank] = {
    val columns = Salt.columns(input.plan.output, input.upsertKeys.headOption)
    val isWanted = isOn(ChangelogConf.RANK_TWO_LEVEL_ENABLED) &&
      rank.partitionBy.forall(_.foldable) && rank.end >= 1 && rank.end <= MostRows &&
      !isLimited(rank.child) && !isUpper(rank) && columns.nonEmpty &&
      RankInference.keepsAll(rank, input) && SQLConf.get.getConf(ChangelogConf.STATE_TTL) == 0
    Option.when(isWanted) {
      val lower = rank.copy(partitionBy = Seq(Salt(columns, salts)), start = 1, rankNumber = None)
      lower.copyTagsFrom(rank)
      lower
    }
  }

  /** Tags a join with its spread side, if a side is spread. */
  def note(join: Join, inputs: Seq[InferredNode]): Unit = {
    val isWanted = isOn(ChangelogConf.JOIN_SPREAD_ENABLED) && !inputs.exists(_.isStatic) &&
      SkewedSide.of(join).isEmpty && EquiJoin(join).pairs.isEmpty
    if (isWanted) {
      val sides = inputs.zip(Seq(true, false)).filter { case (side, isLeft) =>
        !JoinState.isPreserved(join.joinType, !isLeft) && !isLimited(side.plan) &&
        Salt.columns(side.plan.output, side.upsertKeys.headOption).nonEmpty
      }
      sides.headOption.foreach { case (_, isLeft) =>
        SkewedSide.set(join, SkewedSide(isLeft, Nil, Nil, salts))
      }
    }
  }

  private def isOn(setting: ConfigEntry[Boolean]): Boolean =
    salts.size > 1 && SQLConf.get.getConf(setting)
}

object SpreadSingleTasks {

  /** The largest number of ranks for two levels. */
  private val MostRows = 1000

  /** Matches a rank over salts: a lower level. */
  object LowerLevel {
    def unapply(plan: LogicalPlan): Option[Int] = plan match {
      case Rank(_, Seq(Salt(_, ways)), _, _, _, _, _) => Some(ways)
      case _ => None
    }
  }

  /** Whether a rank is an upper level. */
  def isUpper(rank: Rank): Boolean = LowerLevel.unapply(rank.child).isDefined

  /** Whether a constant limits the number of rows. */
  private def isLimited(plan: LogicalPlan): Boolean = plan match {
    case _: Project | _: Filter => isLimited(plan.children.head)
    case rank: Rank => rank.partitionBy.forall(_.foldable) && rank.end <= MostRows
    case agg: Aggregate => agg.groupingExpressions.isEmpty
    case _ => plan.maxRows.exists(_ <= MostRows)
  }
}
