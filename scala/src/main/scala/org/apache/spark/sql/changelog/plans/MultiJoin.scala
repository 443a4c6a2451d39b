// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint, LogicalPlan}

/**
 * Inner joins of three inputs or more on one join key, done at once.
 *
 * @param keys
 *   each input's side of the join key
 * @param matchesNull
 *   for each part of the join key, whether NULL equals NULL
 * @param conditions
 *   what rows with equal join keys must meet besides
 */
case class MultiJoin(
    keys: Seq[Seq[Expression]],
    matchesNull: Seq[Boolean],
    conditions: Seq[Expression],
    children: Seq[LogicalPlan])
    extends LogicalPlan {

  override def output: Seq[Attribute] = children.flatMap(_.output)

  /** The join of one input with the first, by the join key alone; of the first with the second. */
  def withFirst(input: Int): Join = {
    val other = math.max(input, 1)
    join(children.head, other, Nil)
  }

  /** The join as joins of two: of the first two inputs, of that with the third, and so on. */
  def joins: Seq[Join] = children.indices.drop(1).foldLeft(Seq.empty[Join]) { (joins, input) =>
    val further = if (input == children.size - 1) conditions else Nil
    joins :+ join(joins.lastOption.getOrElse(children.head), input, further)
  }

  /** What rows of the inputs must meet to be joined. */
  def condition: Expression = joins.flatMap(_.condition).reduce(And(_, _))

  private def join(left: LogicalPlan, input: Int, further: Seq[Expression]): Join = {
    val equal = keys.head.zip(keys(input)).zip(matchesNull).map {
      case ((first, other), true) => EqualNullSafe(first, other)
      case ((first, other), false) => EqualTo(first, other)
    }
    Join(left, children(input), Inner, (equal ++ further).reduceOption(And(_, _)), JoinHint.NONE)
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): MultiJoin = copy(children = newChildren)
}
