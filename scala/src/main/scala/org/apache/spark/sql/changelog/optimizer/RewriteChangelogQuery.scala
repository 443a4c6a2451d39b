// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, Subquery}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.classic.ClassicConversions.castToImpl

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.identity.RecordedRun
import org.apache.spark.sql.changelog.inference.{
  AnnotatedPlan,
  CheckExecutable,
  InferChangelogMode
}
import org.apache.spark.sql.changelog.microbatch.{AssignStateInfo, SpreadingSalts}
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
class RewriteChangelogQuery(session: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case subquery: Subquery if !subquery.exists(_.isInstanceOf[ToChangelog]) =>
      rewriteQuery(KeepCalls.hide(subquery))
    case query => rewriteQuery(query)
  }

  private def rewriteQuery(plan: LogicalPlan): LogicalPlan = {
    val roots = plan.collect { case root: ToChangelog if root.streaming => root }
    if (!plan.exists(isOurs)) plan
    else if (roots.isEmpty || roots.exists(_.explainOnly)) rewrite(plan, None)
    else {
      // only when a run begins: later batches are planned as its first one
      val run = AssignStateInfo
        .firstOfRun(castToImpl(session))
        .map(new RecordedRun(castToImpl(session), _))
      run.foreach(_.begin())
      val rewritten = rewrite(plan, run)
      run.foreach(run => run.rewrittenTo(RewrittenOperators.in(rewritten, run.sources)))
      run.filter(_.takenOver.isDefined).fold(rewritten)(_ => FirstBatchOnState(rewritten))
    }
  }

  private def rewrite(plan: LogicalPlan, run: Option[RecordedRun]): LogicalPlan = {
    val ids = new OperatorIds(StockOperators.count(plan))
    plan.transformDown {
      case root: ToChangelog if root.streaming => rewrite(root, ids, run)
      case ToChangelog(_, _, _, changeType, child, _, _) =>
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

  private def rewrite(
      root: ToChangelog,
      ids: OperatorIds,
      run: Option[RecordedRun]): LogicalPlan = {
    val salts = SpreadingSalts(castToImpl(session))
    val annotated = ShareEqualParts(InferChangelogMode(normalized(root), salts))
    if (root.explainOnly) OutputRewrite.explained(annotated)
    else {
      CheckExecutable(annotated)
      val watch = root.watched.map(new WatchNodes(_, annotated))
      val nodes = new RewriteNodes(ids, takesOver(annotated, run), watch)
      val changes = nodes(annotated.children.head)
      val operators = nodes.operators.toSeq
      val numbers = operators.map(found => found.node -> found.ids)
      val rewritten = run.flatMap(held(root, _)) match {
        case Some(rows) => OutputRewrite.replacing(annotated, changes, rows, numbers)
        case None => OutputRewrite(annotated, changes, numbers)
      }
      RewrittenOperators.note(rewritten, annotated, operators)
      watch.fold[LogicalPlan](rewritten)(_.output(rewritten))
    }
  }

  /** Which nodes begin with the state of an earlier query, if any do. */
  private def takesOver(
      root: AnnotatedPlan,
      run: Option[RecordedRun]): Option[RewrittenNode => Boolean] =
    for {
      run <- run
      takenOver <- run.takenOver
    } yield {
      val fingerprints = new Fingerprints(root, run.sources)
      found => found.givesRows && fingerprints(found.node).exists(takenOver.parts)
    }

  /** The rows that the target of a query holds that takes over from an earlier one. */
  private def held(root: ToChangelog, run: RecordedRun): Option[LogicalPlan] =
    run.heldRows.map { folder =>
      val columns = root.child.output
      val rows =
        castToImpl(session).read.schema(DataTypeUtils.fromAttributes(columns)).parquet(folder)
      rows.queryExecution.analyzed
    }

  private def normalized(root: ToChangelog): ToChangelog =
    NormalizeChangelogQuery(root.mapChildren(ExtractRecursion(_)).asInstanceOf[ToChangelog])
}
