// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.analysis.{CheckExecutable, InferChangelogMode}
import org.apache.spark.sql.changelog.optimizer.rewrite._
import org.apache.spark.sql.changelog.plans._

/**
 * Turns the query below `to_changelog` into operators that send each other changes.
 *
 * {{{
 *   ToChangelog                          ChangelogOutput
 *   +- Aggregate [cnt]                   +- ChangelogAggregate [cnt]        [I,UB,UA,D]
 *      +- Aggregate [word]         =>       +- ChangelogAggregate [word]    [I,UB,UA]
 *         +- FromChangelog                     +- Project
 *            +- words                             +- words                  [I]
 * }}}
 *
 * Runs once per batch, after Spark's operator optimization, and is deterministic: an operator has
 * the same id in every batch. Over a batch query, `from_changelog` nets its changes and
 * `to_changelog` adds `insert`. Leaves alone every query without the two functions, and the
 * subqueries of a streaming one, which Spark optimizes on their own.
 */
object RewriteChangelogQuery extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(isOurs)) plan
    else {
      val ids = new OperatorIds(0)
      plan.transformDown {
        case root: ToChangelog if root.streaming => rewrite(root)
        case ToChangelog(_, _, _, changeType, child, _) =>
          val inserted = Literal(RowKind.ChangeTypes(RowKind.Insert))
          Project(
            child.output :+ Alias(inserted, changeType.name)(exprId = changeType.exprId),
            child)
        case source: FromChangelog if !source.streaming =>
          SourceRewrite.batch(source, ids.nextSource())
      }
    }

  private def isOurs(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[ToChangelog] || plan.isInstanceOf[FromChangelog]

  private def rewrite(root: ToChangelog): LogicalPlan = {
    val annotated = ShareEqualParts(InferChangelogMode(NormalizeChangelogQuery(root)))
    if (root.explainOnly) OutputRewrite.explained(annotated)
    else {
      CheckExecutable(annotated)
      val stockStateful = root.collect {
        case node if UnsupportedOperationChecker.isStatefulOperation(node) => node
      }
      val ids = new OperatorIds(stockStateful.size)
      OutputRewrite(annotated, new RewriteNodes(ids)(annotated.children.head))
    }
  }
}
