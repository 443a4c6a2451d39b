// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis.inference

import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.Join

import org.apache.spark.sql.changelog.analysis.{DescribeNode, EquiJoin, EventTime, StateTable}

/**
 * Chooses what a join of two changelogs keeps of each side: as little as its keys allow.
 *
 * {{{
 *   the join key holds a key of the side    join key            -> row
 *   the side has another key                join key, key       -> row
 *   the side has no key                     join key, row       -> count
 *   only whether there are matches matters  join key            -> count
 * }}}
 *
 * A side whose rows come out without a match too needs to know how many matches a row has. Without
 * a further condition all rows of a join key have the same number, which is counted once; with one
 * each row has its own.
 */
private[inference] final case class JoinState(
    join: Join,
    equi: EquiJoin,
    left: InferredNode,
    right: InferredNode) {

  private val hasCondition = equi.rest.nonEmpty

  /** What is asked of the inputs, with the state and how it is described. */
  def decision(inputs: Seq[Demand]): Decision = Decision(
    inputs,
    Some(s"left ${form(isLeft = true)}, right ${form(isLeft = false)}"),
    tables(isLeft = true) ++ tables(isLeft = false),
    if (equi.pairs.isEmpty) Seq("no equality between the sides: all rows meet in one partition")
    else Nil)

  /** Whether rows of the side come out, or change, by having no match. */
  private def isPreserved(isLeft: Boolean): Boolean = join.joinType match {
    case _: InnerLike => false
    case FullOuter => true
    case RightOuter => !isLeft
    case _ => isLeft
  }

  /** Whether of the side nothing but the number of its rows matters. */
  private def isCounted(isLeft: Boolean): Boolean = !isLeft && !hasCondition &&
    LeftExistence.unapply(join.joinType).isDefined

  private def form(isLeft: Boolean): String = {
    val keys = side(isLeft).upsertKeys
    val rows =
      if (isCounted(isLeft)) "key count"
      else if (keys.exists(_.subsetOf(equi.columns(isLeft)))) "one row per join key"
      else if (keys.nonEmpty) "row by key"
      else "row count"
    if (isPreserved(isLeft) && hasCondition) s"$rows with matches" else rows
  }

  private def tables(isLeft: Boolean): Seq[StateTable] = {
    val name = if (isLeft) "left" else "right"
    val joinKey = equi.key(isLeft).map(DescribeNode.expression)
    val bound = equi
      .key(isLeft)
      .flatMap(EventTime.columnOf)
      .headOption
      .map(column => s"watermark on $column")
      .getOrElse("unbounded")
    val keys = side(isLeft).upsertKeys
    val holdsKey = keys.exists(_.subsetOf(equi.columns(isLeft)))
    val matches = if (isPreserved(isLeft) && hasCondition) ", matches" else ""

    def table(suffix: String, key: Seq[String], value: String): StateTable =
      StateTable(s"$name $suffix", key, value, bound)

    val rows =
      if (isCounted(isLeft)) table("counts", joinKey, "count")
      else if (holdsKey) table("rows", joinKey, s"row$matches")
      else {
        keys.headOption match {
          case Some(key) =>
            val rest = key.filterNot(equi.columns(isLeft).contains).map(_.name).toSeq
            table("rows", joinKey ++ rest, s"row$matches")
          case None => table("rows", joinKey :+ "row", s"count$matches")
        }
      }
    val needsCounts = isPreserved(!isLeft) && !hasCondition && !isCounted(isLeft) && !holdsKey
    if (needsCounts) Seq(rows, table("counts", joinKey, "count")) else Seq(rows)
  }

  private def side(isLeft: Boolean): InferredNode = if (isLeft) left else right
}
