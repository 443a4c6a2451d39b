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
 * Divides among tasks what one would do, as nothing in the query tells rows apart.
 *
 * {{{
 *   Rank rank [] [price] 6..15          Rank rank [] [price] 6..15
 *   +- bids  [I,UB,UA,D]          =>    +- Rank rank [salt(id)] [price] 1..15
 *                                          +- bids  [I,UB,UA,D]
 *
 *   Join a.x < b.y                =>    Join a.x < b.y, of a row of a with the copy of b that has its salt
 * }}}
 *
 * A rank in two levels gives what one gives. Let n be the last rank that is kept, and a row be better
 * than another if the order says so; for `row_number` the other columns settle ties, in both levels
 * in the same way, so that only equal rows tie, and those have one salt.
 *   - `row_number`, `rank`: the rank of a row is 1 and how many rows stand before it. Among the rows
 *     with its salt no more do, so a row within n comes through the lower level.
 *   - `dense_rank`: it is 1 and how many values are better. Again among some of the rows no more are.
 *   - All that comes before a row within n is within n, too, and comes through: so that row has
 *     its own rank above. Of a row beyond n that comes through, the n first rows (or all rows of the n
 *     best values) come before it above as well, so it is beyond n there, too.
 *
 * Rows whose columns can't all be compared are taken in any order if they tie, as ever.
 *
 * What comes to the upper level is n rows of each salt, so that pays for a small n only. Where rows are
 * forgotten for their age the lower level would forget others than one level does: there is one.
 *
 * Of a join the side is spread that its type allows, the left one first, unless there are few rows of it,
 * as of an aggregate without groups: the other side is kept once for each salt. No statistics are
 * asked: they change, and what has been kept must be found again.
 *
 * @param salts
 *   those among which rows are divided, none if there is one partition only
 */
private[inference] class SpreadSingleTasks(salts: Seq[Int]) {
  import SpreadSingleTasks._

  /** The lower level of a rank, if it has two. */
  def below(rank: Rank, input: InferredNode): Option[Rank] = {
    val columns = Salt.columns(input.plan.output, input.upsertKeys.headOption)
    val isWanted = isOn(ChangelogConf.RANK_TWO_LEVEL_ENABLED) &&
      rank.partitionBy.forall(_.foldable) && rank.end >= 1 && rank.end <= MostRows &&
      !isFew(rank.child) && !isUpper(rank) && columns.nonEmpty &&
      RankInference.keepsAll(rank, input) && SQLConf.get.getConf(ChangelogConf.STATE_TTL) == 0
    Option.when(isWanted) {
      val lower = rank.copy(partitionBy = Seq(Salt(columns, salts)), start = 1, rankNumber = None)
      lower.copyTagsFrom(rank)
      lower
    }
  }

  /** Notes with a join which side is spread, if one is. */
  def note(join: Join, inputs: Seq[InferredNode]): Unit = {
    val isWanted = isOn(ChangelogConf.JOIN_SPREAD_ENABLED) && !inputs.exists(_.isStatic) &&
      SkewedSide.of(join).isEmpty && EquiJoin(join).pairs.isEmpty
    if (isWanted) {
      val sides = inputs.zip(Seq(true, false)).filter { case (side, isLeft) =>
        !JoinState.isPreserved(join.joinType, !isLeft) && !isFew(side.plan) &&
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

  /** The last rank up to which a rank has two levels. */
  private val MostRows = 1000

  /** A rank that finds the first rows of each of some salts. */
  object Lower {
    def unapply(plan: LogicalPlan): Option[Int] = plan match {
      case Rank(_, Seq(Salt(_, ways)), _, _, _, _, _) => Some(ways)
      case _ => None
    }
  }

  /** Whether a rank takes the first rows of each salt. */
  def isUpper(rank: Rank): Boolean = Lower.unapply(rank.child).isDefined

  /** Whether there are no more rows than a constant says. */
  private def isFew(plan: LogicalPlan): Boolean = plan match {
    case _: Project | _: Filter => isFew(plan.children.head)
    case rank: Rank => rank.partitionBy.forall(_.foldable) && rank.end <= MostRows
    case agg: Aggregate => agg.groupingExpressions.isEmpty
    case _ => plan.maxRows.exists(_ <= MostRows)
  }
}
