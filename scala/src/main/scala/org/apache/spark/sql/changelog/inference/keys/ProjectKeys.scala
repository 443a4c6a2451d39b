// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.keys

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.inference.EquiJoin

/**
 * Carries keys through a node with one input, and back.
 *
 * {{{
 *   keys of the input        Project [id AS a, id AS b, v]        keys of the output
 *   {id}                                                          {a}, {b}
 * }}}
 *
 * A column is carried by a plain reference, a rename, or a cast that keeps different values
 * different. A column that is carried twice gives two keys.
 */
object ProjectKeys {

  /** The input's keys in terms of the output of `plan`, if all their columns are kept. */
  def outputKeys(plan: LogicalPlan, inputKeys: Seq[AttributeSet]): Seq[AttributeSet] = {
    val carried = carriedColumns(plan)
    if (repeatsRows(plan)) Nil
    else
      inputKeys.flatMap { key =>
        val choices = key.toSeq.map { column =>
          carried.collect { case (from, to) if from.exprId == column.exprId => to }
        }
        combinations(choices).map(columns => AttributeSet(columns ++ expandId(plan)))
      }
  }

  /** The columns of the input of `plan` that the output's `key` is made of. */
  def inputKey(plan: LogicalPlan, key: AttributeSet): Option[AttributeSet] = {
    val carried = carriedColumns(plan)
    val sources = (key -- expandId(plan)).toSeq.map { column =>
      carried.collectFirst { case (from, to) if to.exprId == column.exprId => from }
    }
    if (sources.forall(_.isDefined)) Some(AttributeSet(sources.flatten)) else None
  }

  /** The column that `expression` carries, if it carries one. */
  def carriedColumn(expression: Expression): Option[Attribute] = expression match {
    case column: Attribute => Some(column)
    case Alias(child, _) => carriedColumn(child)
    case cast: Cast if keepsApart(cast.child.dataType, cast.dataType) => carriedColumn(cast.child)
    case _ => None
  }

  /** All ways to take one element of each choice; one, the empty one, if there is no choice. */
  def combinations[T](choices: Seq[Seq[T]]): Seq[Seq[T]] =
    choices.foldLeft(Seq(Seq.empty[T])) { (heads, choice) =>
      for (head <- heads; last <- choice) yield head :+ last
    }

  /** Pairs of an input column and an output column with its values. */
  private[inference] def carriedColumns(plan: LogicalPlan): Seq[(Attribute, Attribute)] =
    plan match {
      case project: Project =>
        project.projectList.flatMap(e => carriedColumn(e).map(_ -> e.toAttribute))
      case expand: Expand =>
        expand.output.zip(expand.projections.transpose).flatMap { case (to, versions) =>
          val sources = versions.map(carriedColumn).distinct
          if (sources.size == 1) sources.head.map(_ -> to) else None
        }
      case _ =>
        val input = plan.children.head.outputSet
        plan.output.filter(input.contains).map(column => column -> column)
    }

  /** Whether copies of a row come out that nothing tells apart. */
  private def repeatsRows(plan: LogicalPlan): Boolean = plan match {
    case expand: Expand => expand.projections.size > 1 && expandId(expand).isEmpty
    case _ => false
  }

  /** The column that tells the copies of a row apart: each has another constant there. */
  private def expandId(plan: LogicalPlan): Seq[Attribute] = plan match {
    case expand: Expand =>
      expand.output
        .zip(expand.projections.transpose)
        .collectFirst {
          case (id, versions)
              if versions.forall(_.isInstanceOf[Literal]) &&
                versions.distinct.size == versions.size =>
            id
        }
        .toSeq
    case _ => Nil
  }

  /** Whether a cast never makes two different values equal, nor two equal ones different. */
  private def keepsApart(from: DataType, to: DataType): Boolean = (from, to) match {
    case _ if DataType.equalsIgnoreNullability(from, to) => true
    case (small: IntegralType, large: IntegralType) => small.defaultSize <= large.defaultSize
    case (small: IntegralType, large: DecimalType) => large.isWiderThan(small)
    case (small: DecimalType, large: DecimalType) => large.isWiderThan(small)
    case (FloatType, DoubleType) => true
    case (_: IntegralType | DateType | BooleanType, text: StringType) =>
      text.isUTF8BinaryCollation
    case _ => false
  }
}

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
