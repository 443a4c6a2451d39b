// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeMap, Expression}
import org.apache.spark.sql.catalyst.plans.InnerLike
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.inference.EquiJoin
import org.apache.spark.sql.changelog.inference.nodes.StaticInference
import org.apache.spark.sql.changelog.inference.times.JoinWatermark
import org.apache.spark.sql.changelog.plans.{FromChangelog, MultiJoin, SkewedSide}

/**
 * Makes one join of inner joins on the same key, which keeps its inputs but no results in between.
 * {{{
 *   Join Inner, b.k = c.k             MultiJoin a.k = b.k = c.k
 *   :- Join Inner, a.k = b.k          :- a
 *   :  :- a                     =>    :- b
 *   :  +- b                           +- c
 *   +- c
 * }}}
 * Leaves alone joins of other types or on further keys, joins with something static, joins
 * whose rows go some day, by a watermark or for their age, as each of them has its own time, and joins of
 * which a hint `SKEW` spreads one side.
 */
object CombineInnerJoins extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (conf.getConf(ChangelogConf.JOIN_MULTI_ENABLED)) combine(plan) else plan

  private def combine(plan: LogicalPlan): LogicalPlan = plan match {
    // what lies below a source is Spark's own
    case source: FromChangelog => source
    case _ if StaticInference.isStatic(plan) => plan
    case join: Join =>
      val chain = Chain.from(join)
      if (chain.inputs.size < 3) join.mapChildren(combine)
      else {
        val combined =
          MultiJoin(chain.keys, chain.matchesNull, chain.conditions, chain.inputs.map(combine))
        val columns = join.output.map { column =>
          chain.names.get(column).map(rename(_, column)).getOrElse(column)
        }
        if (combined.output == columns) combined else Project(columns, combined)
      }
    case _ => plan.mapChildren(combine)
  }

  private def rename(column: Attribute, as: Attribute): Alias =
    Alias(column, as.name)(as.exprId, as.qualifier)

  /**
   * Joins on the same key, as what they join.
   *
   * @param names
   *   columns of the inputs by the names that projections in between give them
   */
  private case class Chain(
      inputs: Seq[LogicalPlan],
      keys: Seq[Seq[Expression]],
      matchesNull: Seq[Boolean],
      conditions: Seq[Expression],
      names: AttributeMap[Attribute] = AttributeMap.empty) {

    /** An expression over the result, over the inputs. */
    def unnamed(expression: Expression): Expression = expression.transform {
      case column: Attribute => names.getOrElse(column, column)
    }
  }

  private object Chain {
    def from(join: Join): Chain = {
      val equi = EquiJoin(join)
      if (isCombined(join, equi)) inputsOf(join, equi, equi.pairs.indices)
      else Chain(Seq(join), Nil, Nil, Nil)
    }

    /** @param parts which pair of columns each part of the join key is */
    private def inputsOf(join: Join, equi: EquiJoin, parts: Seq[Int]): Chain = {
      val left = below(join.left, parts.map(equi.key(left = true)))
      val right = below(join.right, parts.map(equi.key(left = false)))
      val matchesNull = Seq(parts.map(equi.matchesNull), left.matchesNull, right.matchesNull)
      val chain = Chain(
        left.inputs ++ right.inputs,
        left.keys ++ right.keys,
        matchesNull.transpose.map(_.forall(identity)),
        left.conditions ++ right.conditions,
        left.names ++ right.names)
      chain.copy(conditions = chain.conditions ++ equi.rest.map(chain.unnamed))
    }

    /** What a side of a join is joined from, if by the same key, or else the side. */
    private def below(side: LogicalPlan, key: Seq[Expression]): Chain = {
      val single = Chain(Seq(side), Seq(key), key.map(_ => true), Nil)
      side match {
        case Project(columns, join: Join) if columns.forall(isName) =>
          val named = AttributeMap(columns.collect { case alias @ Alias(column: Attribute, _) =>
            alias.toAttribute -> column
          })
          val chain = below(join, key.map(single.copy(names = named).unnamed))
          if (chain.inputs.size == 1) single
          else {
            val names = named.map { case (name, column) =>
              name -> chain.names.getOrElse(column, column)
            }
            chain.copy(names = chain.names ++ AttributeMap(names))
          }
        case join: Join =>
          val equi = EquiJoin(join)
          val parts = key.map { part =>
            equi.pairs.indexWhere { case (left, right) =>
              left.semanticEquals(part) || right.semanticEquals(part)
            }
          }
          val isSameKey = !parts.contains(-1) && parts.distinct.size == equi.pairs.size
          if (isSameKey && isCombined(join, equi)) inputsOf(join, equi, parts) else single
        case _ => single
      }
    }

    private def isName(column: Expression): Boolean = column match {
      case Alias(_: Attribute, _) | _: Attribute => true
      case _ => false
    }

    private def isCombined(join: Join, equi: EquiJoin): Boolean =
      join.joinType.isInstanceOf[InnerLike] && equi.pairs.nonEmpty &&
        !join.children.exists(StaticInference.isStatic) &&
        SQLConf.get.getConf(ChangelogConf.STATE_TTL) == 0 &&
        SkewedSide.of(join).isEmpty &&
        JoinWatermark(join, equi).columns.forall(_.isEmpty)
  }
}
