// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Generate, LogicalPlan}
import org.apache.spark.sql.types.IntegerType

import org.apache.spark.sql.changelog.inference.nodes.JoinState
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, EquiJoin}
import org.apache.spark.sql.changelog.plans.{Salt, SkewedSide}

/**
 * Spreads the rows of a join key that many rows have, or all: a salt is one more part of the join key.
 *
 * {{{
 *   Join bids.auction = auctions.id      ChangelogJoin [auction, salt of the row] [id, salt]
 *   :- bids, skewed for 1007      =>     :- bids
 *   +- auctions                          +- Generate salt: 0 to 15 if id is 1007, else 0
 *                                           +- auctions
 * }}}
 *
 * The salt of a row of the skewed side is by a hash of what tells it apart, so that what takes it back
 * has the same. Each row of that side meets one copy of a row of the other one, as it would meet the
 * row: pairs, keys and rows without a match are as they were. All copies of a row change with it.
 */
private[rewrite] class SpreadRows(node: AnnotatedPlan, equi: EquiJoin, skew: SkewedSide) {
  private val copied =
    AttributeReference(Salt.Name, IntegerType, nullable = false, Salt.metadata)()

  /** What follows one side of the join key. */
  def salt(isLeft: Boolean): Expression = if (isLeft == skew.isLeft) saltOfRow else copied

  /** The inputs, those of the other side with their copies. */
  def inputs(rewritten: Seq[LogicalPlan]): Seq[LogicalPlan] = {
    val other = if (skew.isLeft) 1 else 0
    rewritten.updated(other, copies(rewritten(other)))
  }

  private def copies(input: LogicalPlan): LogicalPlan = {
    val all = Salt.array(skew.salts)
    val one = Salt.array(skew.salts.take(1))
    val wanted = isSkewed(!skew.isLeft).fold[Expression](all)(If(_, all, one))
    Generate(Explode(wanted), Nil, outer = false, None, Seq(copied), input)
  }

  private def saltOfRow: Expression = {
    val columns = hashed(node.children(if (skew.isLeft) 0 else 1))
    val first = Literal(skew.salts.head)
    val spread =
      if (columns.isEmpty) first
      else if (skew.isHinted) Salt.number(columns, skew.ways)
      else Salt(columns, skew.salts)
    isSkewed(skew.isLeft).fold(spread)(If(_, spread, first))
  }

  /**
   * What tells a row of a side apart: first of all the key by which its rows are replaced, as the old row is
   * looked for where the new one is.
   */
  private def hashed(side: AnnotatedPlan): Seq[Attribute] = {
    val holding = side.upsertKeys.filter(equi.references(skew.isLeft).subsetOf(_))
    val key = side.requiredKey.orElse(holding.headOption).orElse(side.upsertKeys.headOption)
    Salt.columns(side.plan.output, key)
  }

  /** Whether a row of one side has one of the values; none if all are meant. */
  private def isSkewed(isLeft: Boolean): Option[Expression] = {
    val key = equi.key(isLeft).map(EquiJoin.plain)
    skew.values
      .map { value =>
        val parts = ordinals.zip(value).map { case (ordinal, part) =>
          EqualNullSafe(key(ordinal), part): Expression
        }
        parts.reduce(And(_, _))
      }
      .reduceOption(Or(_, _))
  }

  /** Which parts of the join key the columns of the hint are. */
  private lazy val ordinals: Seq[Int] = skew.columns.map { column =>
    equi
      .key(skew.isLeft)
      .indexWhere(EquiJoin.columnOf(_).exists(_.exprId == column.exprId))
  }
}

private[rewrite] object SpreadRows {

  /** How the rows of a join are spread, if they are. */
  def of(node: AnnotatedPlan, state: JoinState): Option[SpreadRows] =
    SkewedSide.of(state.join).map(new SpreadRows(node, state.equi, _))
}
