// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.UpdateKind.OnlyUpdateAfter
import org.apache.spark.sql.changelog.inference.times.JoinWatermark
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, DescribeNode, EquiJoin}
import org.apache.spark.sql.changelog.plans.{LookupJoin, SideForm, SkewedSide, StateTable}

/**
 * Chooses the stored form of each side of a join: as little as the keys permit.
 *
 * {{{
 *   the join key contains an upsert key of the side  join key            -> row
 *   the side has another upsert key                  join key, key       -> row
 *   the side has no upsert key                       join key, row       -> count
 *   no upsert key, and the side is insert-only       join key, batch     -> rows
 *   only the existence of matches matters            join key            -> count
 *   the rows are never looked up                     nothing
 * }}}
 *
 * A preserved side needs the number of matches of each row. Without a further condition, the
 * number is equal for every row of a join key: the row count of the opposite side. With a further
 * condition, each row is stored with a number. An exception is an opposite side with at most one
 * row per join key. The operator has the single row at hand, and the row does not expire before
 * its matches.
 */
final case class JoinState(
    join: Join,
    equi: EquiJoin,
    left: JoinState.Input,
    right: JoinState.Input,
    isLookup: Boolean = false) {

  private val hasCondition = equi.rest.nonEmpty
  private val skew = SkewedSide.of(join)
  private val watermark = if (isLookup) None else Some(JoinWatermark(join, equi))
  private val timedBy = watermark.fold(Seq.fill(2)(Option.empty[String]))(_.columns)

  /** Returns the stored form of a side. */
  def form(isLeft: Boolean): SideForm = byKeys(isLeft) match {
    case SideForm.RowCount if isAppended(isLeft) && !tracksMatches(isLeft) => SideForm.RowList
    case other => other
  }

  private def byKeys(isLeft: Boolean): SideForm =
    if (isLeft && isLookup) SideForm.Nothing
    else if (!isLeft && JoinState.countsRight(join, equi)) SideForm.KeyCount
    else {
      val keys = keysOf(isLeft)
      if (keys.exists(_.subsetOf(equi.columns(isLeft)))) SideForm.OneRow
      else if (keys.nonEmpty) SideForm.RowByKey
      else SideForm.RowCount
    }

  /** Returns the columns that distinguish the rows of a join key, if rows are stored by key. */
  def rowKey(isLeft: Boolean): Seq[Attribute] =
    if (form(isLeft) != SideForm.RowByKey) Nil
    else {
      val key = keysOf(isLeft).head -- equi.columns(isLeft)
      (if (isLeft) join.left else join.right).output.filter(key.contains)
    }

  /** Whether each row of a side is stored with its number of matches. */
  def tracksMatches(isLeft: Boolean): Boolean =
    byKeys(isLeft) != SideForm.Nothing &&
      JoinState.isPreserved(join.joinType, isLeft) && hasCondition &&
      (byKeys(!isLeft) != SideForm.OneRow || isTimed(!isLeft))

  /** Whether a side is insert-only and has columns beside the join key. */
  private def isAppended(isLeft: Boolean): Boolean =
    (if (isLeft) left else right).isInsertOnly &&
      !(if (isLeft) join.left else join.right).outputSet.subsetOf(equi.columns(isLeft))

  /** Whether rows of a side expire by the watermark. */
  private def isTimed(isLeft: Boolean): Boolean = timedBy(if (isLeft) 0 else 1).isDefined

  /** Returns the demands on the inputs, the state and its description. */
  private[inference] def decision(inputs: Seq[Demand]): Decision = Decision(
    inputs,
    Some(s"left ${formText(isLeft = true)}, right ${formText(isLeft = false)}"),
    Seq(table(isLeft = true, "left"), table(isLeft = false, "right")).flatten,
    Seq(
      if (equi.pairs.nonEmpty || skew.isDefined) None
      else Some("no equality between the sides: all rows meet in one partition"),
      skew.map(spread),
      later).flatten)

  private def spread(skew: SkewedSide): String = {
    val (side, other) = if (skew.isLeft) ("left", "right") else ("right", "left")
    val values = skew.values.map(_.map(DescribeNode.expression).mkString("(", ", ", ")"))
    val which =
      if (values.isEmpty) "of each" else s"of ${values.mkString(", ")}"
    val why =
      if (skew.isHinted) s"hint SKEW: $side rows $which ${DescribeNode.key(skew.columns)}"
      else s"no equality between the sides: $side rows"
    s"$why are spread over ${skew.ways} salts, with a copy of $other rows for each"
  }

  private def later: Option[String] = {
    val delay = watermark.fold(0L)(_.delay)
    if (delay == 0) None
    else {
      val length = Utils.msDurationToString(delay)
      Some(s"rows wait for matches: operators above get the watermark $length later")
    }
  }

  /** Without before images, a new row finds the old one by the demanded key. */
  private def keysOf(isLeft: Boolean): Seq[AttributeSet] = {
    val input = if (isLeft) left else right
    input.replacedBy.map(Seq(_)).getOrElse(input.upsertKeys)
  }

  private def formText(isLeft: Boolean): String =
    if (tracksMatches(isLeft)) s"${form(isLeft)} with matches" else form(isLeft).toString

  /** Returns the state table of a side, shown as `name` by EXPLAIN. */
  private[inference] def table(isLeft: Boolean, name: String): Option[StateTable] = {
    val joinKey = equi.key(isLeft).map(DescribeNode.expression) ++ skew.map(_ => "salt")
    val bound = timedBy(if (isLeft) 0 else 1) match {
      case Some(column) => s"a watermark on $column"
      case None => StateTable.unbounded
    }
    val matches = if (tracksMatches(isLeft)) ", matches" else ""
    form(isLeft) match {
      case SideForm.Nothing => None
      case SideForm.OneRow => Some(StateTable(s"$name rows", joinKey, s"row$matches", bound))
      case SideForm.RowByKey =>
        val key = joinKey ++ rowKey(isLeft).map(_.name)
        Some(StateTable(s"$name rows", key, s"row$matches", bound))
      case SideForm.RowCount =>
        Some(StateTable(s"$name rows", joinKey :+ "row", s"count$matches", bound))
      case SideForm.RowList =>
        Some(StateTable(s"$name rows", joinKey :+ "batch", "rows", bound))
      case SideForm.KeyCount => Some(StateTable(s"$name counts", joinKey, "count", bound))
    }
  }
}

object JoinState {

  /**
   * A side of a join.
   *
   * @param replacedBy
   *   the key by which new rows replace old ones, for an input without before images
   */
  final case class Input(
      upsertKeys: Seq[AttributeSet],
      replacedBy: Option[AttributeSet],
      isInsertOnly: Boolean)

  /** Returns the state of a join over annotated inputs. */
  def apply(node: AnnotatedPlan): JoinState = {
    val (join, isLookup) = node.plan match {
      case lookup: LookupJoin => (lookup.toJoin, true)
      case other => (other.asInstanceOf[Join], false)
    }
    val Seq(left, right) = node.children.map(input)
    JoinState(join, EquiJoin(join), left, right, isLookup)
  }

  private[inference] def input(side: AnnotatedPlan): Input =
    Input(side.upsertKeys, side.requiredKey, side.mode.isInsertOnly)

  private[inference] def input(side: InferredNode, asked: Demand): Input = {
    val demand = asked.on(side.kinds)
    Input(
      side.upsertKeys,
      if (demand.kind == OnlyUpdateAfter) demand.key else None,
      side.kinds.isInsertOnly)
  }

  /** Whether the side is preserved: its rows appear, or change, without a match. */
  def isPreserved(joinType: JoinType, isLeft: Boolean): Boolean = joinType match {
    case _: InnerLike => false
    case FullOuter => true
    case RightOuter => !isLeft
    case _ => isLeft
  }

  /** Whether only the number of right rows matters. */
  def countsRight(join: Join, equi: EquiJoin): Boolean =
    equi.rest.isEmpty && LeftExistence.unapply(join.joinType).isDefined
}
