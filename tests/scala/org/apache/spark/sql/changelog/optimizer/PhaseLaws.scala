// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions.{Alias, Expression, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.analysis.RemoveReadMarks
import org.apache.spark.sql.changelog.inference.AnnotatedPlan
import org.apache.spark.sql.changelog.inference.nodes.{StaticInference, StaticSide}
import org.apache.spark.sql.changelog.plans._

/** What holds where a phase ends. Each check returns the broken laws, none for a right plan. */
object PhaseLaws {

  def ofResolved(root: ToChangelog): Seq[String] = {
    val nodes = changing(root).flatMap(node => node +: inSubqueries(node))
    broken(
      "a stream is not below from_changelog" ->
        nodes.exists(node => node.children.isEmpty && node.isStreaming),
      "a name, view or common table is left" -> nodes.exists {
        case _: SubqueryAlias | _: View | _: WithCTE | _: CTERelationRef => true
        case _ => false
      },
      "a hint has no node" -> nodes.exists(_.isInstanceOf[UnresolvedHint]),
      "a lifted source or offset is left" -> nodes.exists {
        case _: LiftedSources | _: LiftedSource | _: SkipRows => true
        case _ => false
      })
  }

  def ofNormalized(root: ToChangelog): Seq[String] = {
    val nodes = changing(root)
    val expressions = nodes.flatMap(_.expressions)
    def has(wanted: Expression => Boolean) = expressions.exists(_.exists(wanted))
    val read = nodes.collect { case source: FromChangelog => source.output }.flatten
    val results = root.outputSet
    broken(
      "a subquery over a changing table is an expression" -> has {
        case subquery: SubqueryExpression => FromChangelog.streamsIn(subquery.plan)
        case _ => false
      },
      "a sort, limit or offset is left" -> nodes.exists {
        case _: Sort | _: LocalLimit | _: GlobalLimit | _: Offset | _: WindowGroupLimit => true
        case _ => false
      },
      "the current time is read outside a temporal filter" -> nodes.exists { node =>
        !node.isInstanceOf[TemporalFilter] && node.expressions.exists(PassingTime.isIn)
      },
      "a hint is left" -> nodes.exists(_.isInstanceOf[Skew]),
      "two readings of a source share a column" ->
        (read.map(_.exprId).distinct.size < read.size),
      "static rows are not inserted" -> nodes.exists {
        case join: Join if StaticSide.looksUp(join) => false
        case _: ChangelogStatic | _: FromChangelog | _: TemporalFilter | _: RowTtl => false
        case node => node.children.exists(StaticInference.isStatic)
      },
      "a column name has an expression id" -> has {
        case alias: Alias =>
          alias.name.matches(".+#\\d+.*") && !results.contains(alias.toAttribute)
        case _ => false
      },
      "a plan is hidden" -> root.exists(_.isInstanceOf[HiddenRows]),
      "a call is hidden" -> !(ShowCalls(root) fastEquals root),
      "a repeated reading is marked" -> !(RemoveReadMarks(root) fastEquals root))
  }

  def ofAnnotated(root: AnnotatedPlan): Seq[String] = {
    val nodes = all(root)
    val readings = nodes.flatMap(_.shared).groupBy(_.number).values
    broken(
      "the tree has another shape than the plan" ->
        nodes.exists(node => node.children.map(_.plan) != node.plan.children),
      "a mode has another update kind than demanded" ->
        nodes.exists(node => node.mode.updateKind != node.required),
      "a key is not in the output" ->
        nodes.exists(node => !node.upsertKeys.forall(_.subsetOf(node.plan.outputSet))),
      "a shared part is not computed once" -> readings.exists(_.count(_.computes) != 1))
  }

  def ofEmitted(plan: LogicalPlan, root: AnnotatedPlan): Seq[String] = {
    val numbers = plan.collect { case operator: KeepsState => operator.operatorId }
    broken(
      "the root is no output of changes" -> !plan.isInstanceOf[ChangelogOutput],
      "a node is not rewritten" -> plan.exists {
        case source: FromChangelog => source.streaming
        case _: ToChangelog | _: Rank | _: TemporalFilter | _: RowTtl | _: RecursiveQuery |
            _: Emit =>
          true
        case _ => false
      },
      "the changes have kinds, or have none, against their mode" ->
        (RowKind.find(plan.children.head.output).isEmpty != root.children.head.mode.isInsertOnly),
      "two operators have one number" -> (numbers.distinct.size < numbers.size),
      "a node reads a column that its inputs do not have" -> plan.exists(_.missingInput.nonEmpty))
  }

  private def broken(laws: (String, Boolean)*): Seq[String] =
    laws.collect { case (law, isBroken) if isBroken => law }

  /** The nodes that are neither below a source nor part of static rows. */
  private def changing(plan: LogicalPlan): Seq[LogicalPlan] = plan match {
    case source: FromChangelog => Seq(source)
    case static if StaticInference.isStatic(static) => Nil
    case ChangelogStatic(_) => Seq(plan)
    case _ => plan +: plan.children.flatMap(changing)
  }

  private def inSubqueries(node: LogicalPlan): Seq[LogicalPlan] =
    node.subqueries.flatMap(changing).flatMap(inner => inner +: inSubqueries(inner))

  private def all(node: AnnotatedPlan): Seq[AnnotatedPlan] = node +: node.children.flatMap(all)
}
