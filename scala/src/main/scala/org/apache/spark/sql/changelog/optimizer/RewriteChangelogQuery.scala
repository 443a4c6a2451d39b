// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import scala.collection.mutable

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, Subquery}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.ClassicConversions.castToImpl

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.identity.{CanonicalPlan, OperatorRecord, RecordedRun}
import org.apache.spark.sql.changelog.inference.{
  AnnotatedPlan,
  CheckExecutable,
  DescribeNode,
  InferChangelogMode
}
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
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
    else if (roots.isEmpty || roots.exists(_.explainOnly)) rewrite(plan)
    else {
      val run = AssignStateInfo
        .firstOfRun(castToImpl(session))
        .map(new RecordedRun(castToImpl(session), _))
      run.foreach(_.begin())
      val operators = mutable.ArrayBuffer.empty[OperatorRecord]
      // only when a run begins: later batches are planned as its first one
      val rewritten = rewrite(plan, found => if (run.isDefined) operators ++= found)
      run.foreach(_.rewrittenTo(operators.toSeq))
      rewritten
    }
  }

  /**
   * @param note
   *   is told the operators of each `to_changelog`
   */
  private def rewrite(
      plan: LogicalPlan,
      note: (=> Seq[OperatorRecord]) => Unit = _ => ()): LogicalPlan = {
    val ids = new OperatorIds(StockOperators.count(plan))
    plan.transformDown {
      case root: ToChangelog if root.streaming => rewrite(root, ids, note)
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

  private def rewrite(
      root: ToChangelog,
      ids: OperatorIds,
      note: (=> Seq[OperatorRecord]) => Unit): LogicalPlan = {
    val annotated = ShareEqualParts(InferChangelogMode(normalized(root)))
    if (root.explainOnly) OutputRewrite.explained(annotated)
    else {
      CheckExecutable(annotated)
      val nodes = new RewriteNodes(ids)
      val input = nodes(annotated.children.head)
      val operators = nodes.operators.toSeq
      note(recorded(annotated, operators))
      OutputRewrite(annotated, input, operators)
    }
  }

  private def normalized(root: ToChangelog): ToChangelog =
    NormalizeChangelogQuery(root.mapChildren(ExtractRecursion(_)).asInstanceOf[ToChangelog])

  private def recorded(
      root: AnnotatedPlan,
      operators: Seq[(AnnotatedPlan, Seq[Long])]): Seq[OperatorRecord] = {
    val texts = CanonicalPlan.texts(root.plan)
    operators.map { case (node, ids) =>
      OperatorRecord(
        ids,
        texts(node.plan),
        s"${DescribeNode.node(node.plan)} ${DescribeNode.detail(node.plan)}",
        node.mode.toString,
        node.state.map(_.toString))
    }
  }
}
