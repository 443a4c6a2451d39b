// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.plans.logical.{
  AnalysisHelper,
  CTERelationRef,
  LogicalPlan,
  WithCTE
}
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.plans.ToChangelog

/**
 * Puts common table expressions in place where `to_changelog` reads them.
 *
 * {{{
 *   WithCTE                               ToChangelog streaming
 *   :- CTERelationDef 0                   +- Aggregate
 *   :  +- Aggregate                =>        +- FromChangelog
 *   :     +- words                              +- words
 *   +- ToChangelog
 *      +- CTERelationRef 0
 * }}}
 *
 * Only then is it known whether the query is over streams, and which. Runs when everything else is
 * resolved. Spark would inline them later, in the optimizer, and queries without `to_changelog`
 * are left to that.
 */
object InlineCommonTables extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(isOurs)) plan
    else {
      AnalysisHelper.allowInvokingTransformsInAnalyzer {
        SparkRules.inlineCommonTables(plan).transformUp { case root: ToChangelog =>
          ReadStreams(root)
        }
      }
    }

  private def isOurs(plan: LogicalPlan): Boolean = plan match {
    case common: WithCTE => common.exists(readsCommonTable)
    case _ => false
  }

  private def readsCommonTable(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[ToChangelog] &&
      plan.collectWithSubqueries { case reference: CTERelationRef => reference }.nonEmpty
}
