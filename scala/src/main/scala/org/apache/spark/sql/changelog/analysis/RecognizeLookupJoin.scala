// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.inference.nodes.StaticInference
import org.apache.spark.sql.changelog.plans.{LookupJoin, LookupTable, Skew, ToChangelog}

/**
 * Recognizes joins with a table as it is when rows come.
 *
 * {{{
 *   Join Inner, o.cur = r.cur               LookupJoin Inner, o.cur = r.cur
 *   :- orders o                      =>     :- orders o
 *   +- LookupTable                          +- rates r
 *      +- rates r
 * }}}
 *
 * A table that never changes is joined as ever. Refuses `lookup` anywhere else than on the right
 * side of such a join, where it would be without meaning. Leaves alone queries that do not stream.
 */
object RecognizeLookupJoin extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(isOurs)) plan
    else {
      AnalysisHelper.allowInvokingTransformsInAnalyzer {
        plan.transformUp {
          case root: ToChangelog if isOurs(root) =>
            val found = SparkRules.inlineCommonTables(root.child).transformUp(recognize)
            root.copy(child = check(found))
        }
      }
    }

  private def isOurs(plan: LogicalPlan): Boolean = plan match {
    case root: ToChangelog => root.streaming && hasLookup(root)
    case _ => false
  }

  private def hasLookup(plan: LogicalPlan): Boolean =
    plan.collectWithSubqueries { case lookup: LookupTable => lookup }.nonEmpty

  private val recognize: PartialFunction[LogicalPlan, LogicalPlan] = {
    case LookupTable(table) if StaticInference.isStatic(table) => table
    case Join(left, right, joinType @ (Inner | LeftOuter | LeftSemi | LeftAnti), condition, _)
        if isLookup(right) =>
      LookupJoin(
        joinType,
        condition,
        left,
        right.transformUp { case LookupTable(table) => table })
  }

  private def isLookup(plan: LogicalPlan): Boolean = plan match {
    case _: LookupTable => true
    case _: SubqueryAlias | _: View | _: Project | _: Filter | _: Skew =>
      isLookup(plan.children.head)
    case _ => false
  }

  private def check(plan: LogicalPlan): LogicalPlan =
    if (hasLookup(plan)) throw ChangelogErrors.lookupMisplaced() else plan
}
