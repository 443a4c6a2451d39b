// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.types.TimestampType

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.identity.RecordedRun
import org.apache.spark.sql.changelog.microbatch.{AssignStateInfo, SpreadingSalts}
import org.apache.spark.sql.changelog.optimizer.rewrite._
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.sources.tables.PruneComparedColumns

/**
 * Rewrites the query below `to_changelog` to operators that exchange changes.
 *
 * {{{
 *   ToChangelog                          ChangelogOutput
 *   +- Aggregate [cnt]                   +- ChangelogAggregate [cnt]        [I,UB,UA,D]
 *      +- Aggregate [word]         =>       +- ChangelogAggregate [word]    [I,UB,UA]
 *         +- FromChangelog                     +- Project
 *            +- words                             +- words                  [I]
 * }}}
 *
 * The rule runs once per batch, after Spark's operator optimization, in phases: [[ResolvePhase]], [[NormalizePhase]],
 * [[AnnotatePhase]], [[EmitPhase]]. The rewrite is deterministic: an operator has an equal id in every batch. In a
 * batch query, `from_changelog` nets its changes and `to_changelog` adds `insert`. Two kinds of plans stay unchanged:
 * queries without the two functions, and subqueries of a streaming query, which Spark optimizes separately.
 */
class RewriteChangelogQuery(spark: SparkSession) extends Rule[LogicalPlan] {
  private val session = castToImpl(spark)

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case subquery: Subquery if !subquery.exists(_.isInstanceOf[ToChangelog]) =>
      rewriteQuery(KeepCalls.hide(subquery))
    case query => rewriteQuery(query)
  }

  private def rewriteQuery(plan: LogicalPlan): LogicalPlan = {
    val roots = plan.collect { case root: ToChangelog if root.streaming => root }
    if (!plan.exists(isChangelogNode)) plan
    else if (roots.isEmpty || roots.exists(_.explainOnly)) rewrite(plan, None)
    else {
      // Only when a run begins. Later batches are planned like the first one.
      val run = AssignStateInfo.firstOfRun(session).map(new RecordedRun(session, _))
      run.foreach(_.begin())
      val rewritten = PruneComparedColumns(rewrite(plan, run))
      run.foreach(run => run.rewrittenTo(RewrittenOperators.in(rewritten, run.sources)))
      run.filter(_.inheritedState.isDefined).fold(rewritten)(_ => FirstBatchOnState(rewritten))
    }
  }

  private def rewrite(plan: LogicalPlan, run: Option[RecordedRun]): LogicalPlan = {
    val ids = new OperatorIds(StockOperators.count(plan))
    val emit = new EmitPhase(session, ids, run)
    val roots = plan.collect { case root: ToChangelog if root.streaming => ResolvePhase(root) }
    val queries = AnnotatePhase(NormalizePhase(roots), SpreadingSalts(session)).iterator
    plan.transformDown {
      case root: ToChangelog if root.streaming => emit(queries.next())
      case ToChangelog(_, _, _, changeType, child, _, _, _, _) =>
        val inserted = Literal(RowKind.ChangeTypes(RowKind.Insert))
        Project(
          child.output :+ Alias(inserted, changeType.name)(exprId = changeType.exprId),
          child)
      case source: FromChangelog if !source.streaming =>
        SourceRewrite.batch(source, ids.nextSource())
      case KeyedVersions(_, child) => child
      case history: CommitHistory => current(history)
    }
  }

  /** In a batch query, every row is valid from now on. */
  private def current(history: CommitHistory): LogicalPlan = {
    val now = Literal(System.currentTimeMillis() * 1000, TimestampType)
    val values = Seq(now, Literal(null, TimestampType), Literal(true))
    val validity = history.validity.zip(values).map { case (column, value) =>
      Alias(value, column.name)(exprId = column.exprId)
    }
    Project(history.child.output ++ validity, history.child)
  }

  private def isChangelogNode(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[ToChangelog] || plan.isInstanceOf[FromChangelog] ||
      plan.isInstanceOf[KeyedVersions] || plan.isInstanceOf[CommitHistory]
}

/**
 * Counts Spark's own stateful operators in a plan, below `from_changelog` or above
 * `to_changelog`.
 *
 * Spark numbers its operators from 0 after planning a batch, when ours already have ids. An
 * operator counted here and not planned leaves a gap in the numbers.
 */
private[optimizer] object StockOperators {
  def count(plan: LogicalPlan): Long = plan
    .collect {
      case node if SparkRules.keepsState(node) => node
      case limit: GlobalLimit if limit.isStreaming => limit
      case deduplicated: Deduplicate if deduplicated.isStreaming => deduplicated
    }
    .size
    .toLong
}
