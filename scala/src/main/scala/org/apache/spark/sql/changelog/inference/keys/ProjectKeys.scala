// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.keys

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.inference.EquiJoin

/**
 * ProjectKeys: translates keys through a node with one input, and back.
 *
 * {{{
 *   keys of the input        Project [id AS a, id AS b, v]        keys of the output
 *   {id}                                                          {a}, {b}
 * }}}
 *
 * A plain reference, a rename or an injective cast carries a column. A column carried twice gives
 * two keys.
 */
object ProjectKeys {

  /**
   * Returns the input's keys in columns of the output of `plan`. A key with a dropped column is
   * omitted.
   */
  def outputKeys(plan: LogicalPlan, inputKeys: Seq[AttributeSet]): Seq[AttributeSet] = {
    val carried = carriedColumns(plan)
    if (emitsDuplicates(plan)) Nil
    else
      inputKeys.flatMap { key =>
        val choices = key.toSeq.map { column =>
          carried.collect { case (from, to) if from.exprId == column.exprId => to }
        }
        combinations(choices).map(columns => AttributeSet(columns ++ expandId(plan)))
      }
  }

  /** Returns the input columns behind the output's `key`, if all are carried. */
  def inputKey(plan: LogicalPlan, key: AttributeSet): Option[AttributeSet] = {
    val carried = carriedColumns(plan)
    val sources = (key -- expandId(plan)).toSeq.map { column =>
      carried.collectFirst { case (from, to) if to.exprId == column.exprId => from }
    }
    if (sources.forall(_.isDefined)) Some(AttributeSet(sources.flatten)) else None
  }

  /** Returns the column carried by `expression`, if any. */
  def carriedColumn(expression: Expression): Option[Attribute] = expression match {
    case column: Attribute => Some(column)
    case Alias(child, _) => carriedColumn(child)
    case cast: Cast if keepsApart(cast.child.dataType, cast.dataType) => carriedColumn(cast.child)
    case _ => None
  }

  /**
   * Returns the combinations of an element from each choice. Without choices, returns an empty
   * combination.
   */
  def combinations[T](choices: Seq[Seq[T]]): Seq[Seq[T]] =
    choices.foldLeft(Seq(Seq.empty[T])) { (heads, choice) =>
      for (head <- heads; last <- choice) yield head :+ last
    }

  /** Returns pairs of an input column and an output column with equal values. */
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

  /** Whether the node emits indistinguishable copies of a row. */
  private def emitsDuplicates(plan: LogicalPlan): Boolean = plan match {
    case expand: Expand => expand.projections.size > 1 && expandId(expand).isEmpty
    case _ => false
  }

  /** Returns the column that distinguishes the copies of a row by a constant. */
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

  /**
   * Whether a cast is injective: equal values stay equal, and different values stay different.
   */
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
 * CoalescedKeys: the key of a full join by `USING`. Each key column holds the value of the left
 * or the right side.
 *
 * {{{
 *   a FULL JOIN b USING (k, l)
 *
 *   Project [coalesce(a.k, b.k) AS k, coalesce(a.l, b.l) AS l, ...]      key (k, l)
 *   +- Join FullOuter ((a.k = b.k) AND (a.l = b.l))                      key (a.k, a.l, b.k, b.l)
 * }}}
 *
 * Two conditions apply. Each side has at most one row per value of the join key, and the join key
 * alone decides about matches. The join key of an unmatched row then does not occur on the
 * opposite side. Rows with NULL never match, so one column of each pair must be non-null.
 */
private[inference] object CoalescedKeys {

  /**
   * @param inputKeys
   *   the keys of the input of `project`
   */
  def apply(project: Project, inputKeys: Seq[AttributeSet]): Seq[AttributeSet] =
    joinBelow(project.child).toSeq.flatMap { join =>
      val equi = EquiJoin(join)
      val known = equi.columns(left = true) ++ equi.columns(left = false)
      val isOneEach = equi.rest.isEmpty && inputKeys.exists(_.subsetOf(known))
      if (!isOneEach || !equi.pairs.indices.forall(canMeet(join, equi, _))) Nil
      else ProjectKeys.combinations(equi.pairs.map(names(project, _))).map(AttributeSet(_))
    }

  /** Filters only remove rows. */
  private def joinBelow(plan: LogicalPlan): Option[Join] = plan match {
    case join: Join if join.joinType == FullOuter => Some(join)
    case filter: Filter => joinBelow(filter.child)
    case _ => None
  }

  /** Whether equal values of a pair of columns always match. */
  private def canMeet(join: Join, equi: EquiJoin, index: Int): Boolean = {
    val (left, right) = equi.pairs(index)
    def isNeverNull(side: LogicalPlan, value: Expression) =
      ProjectKeys.carriedColumn(value).exists(UpsertKeys.isNeverNull(side, _))
    isNeverNull(join.left, left) || isNeverNull(join.right, right)
  }

  /** Returns the columns that coalesce both sides of `pair`. */
  private def names(project: Project, pair: (Expression, Expression)) =
    project.projectList.collect {
      case alias @ Alias(Coalesce(Seq(first, second)), _) if Seq(pair, pair.swap).exists {
            case (a, b) =>
              first.semanticEquals(a) && second.semanticEquals(b)
          } =>
        alias.toAttribute
    }
}
