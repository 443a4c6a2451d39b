// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.UpdateKind
import org.apache.spark.sql.changelog.inference.AnnotatedPlan
import org.apache.spark.sql.changelog.inference.keys.{ProjectKeys, UpsertKeys}
import org.apache.spark.sql.changelog.inference.nodes.{JoinState, StaticInference}
import org.apache.spark.sql.changelog.plans.{FromChangelog, InputMode, Rank, SideForm, SkewedSide}

/**
 * The keys that a batch holds at most one change of, the halves of an update side by side.
 *
 * {{{
 *   aggregate                 its groups
 *   rank                      a place of it, or a row of its partition
 *   source of new rows        its key
 *   join of one row with one  every key that holds the join key
 *   projection, filter        those of the input, as far as they are kept
 * }}}
 */
private[rewrite] object NettedKeys {

  def apply(node: AnnotatedPlan): Seq[AttributeSet] = node.plan match {
    case _: Aggregate => node.upsertKeys
    // a window is netted by the consumer's key where old rows are left out by that
    case _: Window if node.mode.updateKind == UpdateKind.OnlyUpdateAfter => node.upsertKeys
    case rank: Rank =>
      // a row that changes its partition leaves one and enters the other
      val partition = AttributeSet(rank.partitionBy)
      UpsertKeys.slotKey(rank) match {
        case Some(slot) => node.upsertKeys.filter(_ == slot)
        case None => node.upsertKeys.filter(partition.subsetOf(_))
      }
    case source: FromChangelog if source.input == InputMode.Upsert => node.upsertKeys
    case join: Join if !node.children.exists(side => StaticInference.isStatic(side.plan)) =>
      ofJoin(node, join.joinType)
    case _: Project | _: Filter | _: EventTimeWatermark =>
      ProjectKeys
        .outputKeys(node.plan, apply(node.children.head))
        .filter(node.upsertKeys.contains)
    case _ => Nil
  }

  /**
   * Where each side has one row per join key at most, so has the result before a batch and after
   * it; a full join has one per side, whose keys differ. All changes of a key meet in one task if
   * the key holds the join key.
   *
   * Left and right joins are left out: the row that comes may stand before the one that goes.
   */
  private def ofJoin(node: AnnotatedPlan, joinType: JoinType): Seq[AttributeSet] = {
    val state = JoinState(node)
    def isSingle(isLeft: Boolean) = state.form(isLeft) match {
      case SideForm.OneRow => true
      case SideForm.KeyCount => !isLeft
      case _ => false
    }
    def joinKey(isLeft: Boolean) = state.equi.references(isLeft)
    def holding(columns: AttributeSet) = node.upsertKeys.filter(columns.subsetOf(_))

    if (SkewedSide.of(state.join).isDefined) Nil // changes of a key meet in several tasks
    else if (!isSingle(isLeft = true) || !isSingle(isLeft = false)) Nil
    else
      joinType match {
        case _: InnerLike => (holding(joinKey(true)) ++ holding(joinKey(false))).distinct
        case LeftSemi => holding(joinKey(true))
        // rows without a join key come out as they come in
        case LeftAnti if neverNull(node.children(0), joinKey(true)) => holding(joinKey(true))
        case FullOuter if Seq(0, 1).forall(i => neverNull(node.children(i), joinKey(i == 0))) =>
          holding(joinKey(true) ++ joinKey(false))
        case _ => Nil
      }
  }

  /** Whether no row has NULL in these columns: a source refuses rows without their key. */
  private def neverNull(node: AnnotatedPlan, columns: AttributeSet): Boolean =
    columns.forall(column => node.plan.output.exists(c => c == column && !c.nullable)) ||
      (node.plan match {
        case source: FromChangelog =>
          source.kind.isDefined && columns.subsetOf(AttributeSet(source.key))
        case _: Project | _: Filter | _: EventTimeWatermark =>
          ProjectKeys.inputKey(node.plan, columns).exists(neverNull(node.children.head, _))
        case _ => false
      })
}
