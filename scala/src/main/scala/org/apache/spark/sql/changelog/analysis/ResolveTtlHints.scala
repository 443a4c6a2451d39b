// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.UNRESOLVED_HINT
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.plans.StateTtl

/**
 * Puts what a `STATE_TTL` or `ROW_TTL` hint says to where the tables it names are read.
 * {{{
 *   UnresolvedHint STATE_TTL, [o, 3d]             Project
 *   +- Project                                    +- Join
 *      +- Join                             =>        :- StateTtl 3d
 *         :- SubqueryAlias o                         :  +- SubqueryAlias o
 *         +- SubqueryAlias c                         +- SubqueryAlias c
 * }}}
 * Names are matched as Spark matches those of join hints: within the `SELECT` the hint stands in.
 * Runs with Spark's own rules for hints, before names are resolved. What is wrong with a hint is no
 * error where there is no `to_changelog`: Spark ignores hints it does not know.
 */
object ResolveTtlHints extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.resolveOperatorsUpWithPruning(_.containsPattern(UNRESOLVED_HINT)) {
      case hint: UnresolvedHint if TtlHint.named(hint.name).isDefined =>
        try resolve(hint, TtlHint.named(hint.name).get)
        catch { case problem: AnalysisException => StateTtl(Left(problem), hint.child) }
    }

  private def resolve(hint: UnresolvedHint, meaning: TtlHint): LogicalPlan =
    meaning.parse(hint.parameters).foldLeft(hint.child) {
      case (plan, (Nil, ttl)) => meaning.over(ttl, plan)
      case (plan, (name, ttl)) =>
        val placed = place(plan, name, meaning.over(ttl, _))
        if (placed.fastEquals(plan)) {
          throw meaning.invalid(
            "name",
            s"'${name.mkString(".")}'",
            s"the SELECT it stands in reads ${named(hint.child).mkString(", ")}")
        }
        placed
    }

  private def place(
      plan: LogicalPlan,
      name: Seq[String],
      over: LogicalPlan => LogicalPlan): LogicalPlan = {
    val relation = nameOf(plan)
    if (relation.exists(matches(name, _))) over(plan)
    else if (relation.isDefined || isOtherQuery(plan)) plan
    else plan.mapChildren(place(_, name, over))
  }

  private def named(plan: LogicalPlan): Seq[String] = nameOf(plan) match {
    case Some(name) => Seq(s"'${name.mkString(".")}'")
    case None if isOtherQuery(plan) => Nil
    case None => plan.children.flatMap(named)
  }

  /** What a query calls a relation it reads. */
  private def nameOf(plan: LogicalPlan): Option[Seq[String]] = plan match {
    case UnresolvedRelation(name, _, _) => Some(name)
    case alias: SubqueryAlias => Some(alias.identifier.qualifier :+ alias.identifier.name)
    case _ => None
  }

  private def isOtherQuery(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[View] || plan.isInstanceOf[UnresolvedWith]

  /** Whether a name in a hint is the end of a relation's. */
  private def matches(name: Seq[String], relation: Seq[String]): Boolean =
    name.size <= relation.size &&
      name.zip(relation.takeRight(name.size)).forall { case (one, other) =>
        SQLConf.get.resolver(one, other)
      }
}
