// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnresolvedHint}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.UNRESOLVED_HINT

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
        HintedTables.placed(plan, name, meaning.over(ttl, _)).getOrElse {
          val read = HintedTables.names(hint.child).mkString(", ")
          throw meaning.invalid(
            "name",
            s"'${name.mkString(".")}'",
            s"the SELECT it stands in reads $read")
        }
    }
}
