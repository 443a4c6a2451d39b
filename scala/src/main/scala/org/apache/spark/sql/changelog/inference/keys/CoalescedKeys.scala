// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.keys

import org.apache.spark.sql.catalyst.expressions.{Alias, AttributeSet, Coalesce, Expression}
import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan, Project}

import org.apache.spark.sql.changelog.inference.EquiJoin

/**
 * The key of a full join by `USING`: the columns that hold the value of whichever side has one.
 *
 * {{{
 *   a FULL JOIN b USING (k, l)
 *
 *   Project [coalesce(a.k, b.k) AS k, coalesce(a.l, b.l) AS l, ...]      key (k, l)
 *   +- Join FullOuter ((a.k = b.k) AND (a.l = b.l))                      key (a.k, a.l, b.k, b.l)
 * }}}
 *
 * Holds if each side has at most one row for the values of all these columns, and if nothing but
 * those decides whether two rows meet: then a row of one side that met none has values that no row of
 * the other side has. Rows with NULL meet none, so of each pair of columns one has no NULL.
 */
private[inference] object CoalescedKeys {

  /** @param inputKeys the keys of the input of `project` */
  def apply(project: Project, inputKeys: Seq[AttributeSet]): Seq[AttributeSet] =
    joinBelow(project.child).toSeq.flatMap { join =>
      val equi = EquiJoin(join)
      val known = equi.columns(left = true) ++ equi.columns(left = false)
      val isOneEach = equi.rest.isEmpty && inputKeys.exists(_.subsetOf(known))
      if (!isOneEach || !equi.pairs.indices.forall(canMeet(join, equi, _))) Nil
      else ProjectKeys.combinations(equi.pairs.map(names(project, _))).map(AttributeSet(_))
    }

  /** Filters take rows away. */
  private def joinBelow(plan: LogicalPlan): Option[Join] = plan match {
    case join: Join if join.joinType == FullOuter => Some(join)
    case filter: Filter => joinBelow(filter.child)
    case _ => None
  }

  /** Whether equal values of a pair of columns are always such by which rows meet. */
  private def canMeet(join: Join, equi: EquiJoin, index: Int): Boolean = {
    val (left, right) = equi.pairs(index)
    def isNeverNull(side: LogicalPlan, value: Expression) =
      ProjectKeys.carriedColumn(value).exists(UpsertKeys.isNeverNull(side, _))
    isNeverNull(join.left, left) || isNeverNull(join.right, right)
  }

  /** The columns with the value of whichever side of `pair` has one. */
  private def names(project: Project, pair: (Expression, Expression)) =
    project.projectList.collect {
      case alias @ Alias(Coalesce(Seq(first, second)), _) if Seq(pair, pair.swap).exists {
            case (a, b) =>
              first.semanticEquals(a) && second.semanticEquals(b)
          } =>
        alias.toAttribute
    }
}
