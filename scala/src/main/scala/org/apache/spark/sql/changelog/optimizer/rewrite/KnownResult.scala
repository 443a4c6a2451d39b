// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}

import org.apache.spark.sql.changelog.inference.{AggregateForm, AnnotatedPlan}
import org.apache.spark.sql.changelog.plans._

/** Tells of which operators the whole result can be read from what they keep. */
private[optimizer] object KnownResult {

  def apply(node: AnnotatedPlan, operator: LogicalPlan): Boolean =
    node.state.forall(_.keepsAll) && (operator match {
      case _: ChangelogNormalize => true
      case aggregate: ChangelogAggregate => !aggregate.emitsClosed && !groupsSessions(node)
      case rank: ChangelogRank =>
        rank.ranking.strategy match {
          case RankStrategy.AppendFast | RankStrategy.UpdateFast | RankStrategy.Retract => true
          // only counts, or rows that have not been emitted
          case RankStrategy.FirstCome | RankStrategy.Earliest => false
        }
      case join: ChangelogJoin =>
        val sides = Seq(join.leftSide, join.rightSide)
        sides.forall(_.form != SideForm.Nothing) &&
        preserved(join).forall(side => isAlwaysKept(side.key, join.matchesNull))
      // of sessions buffers may be kept instead of rows
      case replay: ChangelogReplay => !replay.emitsClosed && !groupsSessions(node)
      case _ => false
    })

  private def groupsSessions(node: AnnotatedPlan): Boolean = node.plan match {
    case aggregate: Aggregate => AggregateForm.groupsSessions(aggregate)
    case _ => false
  }

  /** The sides whose rows come out without a match. */
  private def preserved(join: ChangelogJoin): Seq[JoinedSide] = join.joinType match {
    case LeftOuter | LeftSingle | LeftAnti | ExistenceJoin(_) => Seq(join.leftSide)
    case RightOuter => Seq(join.rightSide)
    case FullOuter => Seq(join.leftSide, join.rightSide)
    case _ => Nil
  }

  /** Whether no key is NULL where NULL matches nothing: rows with such a key pass, and are not kept. */
  private def isAlwaysKept(key: Seq[Expression], matchesNull: Seq[Boolean]): Boolean =
    key.zip(matchesNull).forall { case (part, matches) => matches || !part.nullable }
}
