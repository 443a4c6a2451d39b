// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, Literal}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag

/**
 * The side of a join of whose rows many have one join key, as a hint `SKEW` says, or all have, where the
 * join has no equality.
 *
 * @param columns
 *   columns of the side, each of which is a part of the join key; none without an equality
 * @param values
 *   the values of them that many rows have, of the join key's types; none if all values are meant
 * @param salts
 *   those over which rows with one of them are spread
 */
final case class SkewedSide(
    isLeft: Boolean,
    columns: Seq[Attribute],
    values: Seq[Seq[Literal]],
    salts: Seq[Int]) {

  def ways: Int = salts.size

  /** Whether a hint says so. */
  def isHinted: Boolean = columns.nonEmpty

  /** What it says of a join, whatever its columns are called. */
  def places(join: LogicalPlan): Seq[Any] = {
    val side = join.children(if (isLeft) 0 else 1).output
    val ordinals = columns.map(column => side.indexWhere(_.exprId == column.exprId))
    Seq(isLeft, ordinals, values, salts)
  }
}

object SkewedSide {
  private val tag = TreeNodeTag[SkewedSide]("changelogSkewedSide")

  /** Notes with a join what a hint says about one of its sides. */
  def set(join: LogicalPlan, side: SkewedSide): Unit = join.setTagValue(tag, side)

  /** What a hint says about a side of a join. */
  def of(join: LogicalPlan): Option[SkewedSide] = join.getTagValue(tag)
}
