// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{
  Attribute, AttributeMap, ExprId, LateralSubquery, SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.LeftSemiOrAnti
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.{
  FromChangelog, LiftedSource, LiftedSources, RenameColumns, SkipRows, ToChangelog
}

/**
 * Turns the changing tables read by subqueries into nodes of the plan.
 *
 * {{{
 *   ToChangelog                           ToChangelog
 *   +- Filter id IN (listquery)           +- Filter id IN (listquery)
 *      :  +- Project [uid]                   :  +- Project [uid]
 *      :     +- FromChangelog u       =>     :     +- LiftedSource 0
 *      +- FromChangelog t                    +- LiftedSources
 *                                               :- FromChangelog t
 *                                               +- FromChangelog u
 * }}}
 *
 * A stream gets rows only as a node of the plan. The subqueries stay in place. When a batch is
 * optimized, [[LowerSources]] restores their sources, and Spark rewrites the subqueries as usual.
 * Static tables in subqueries are not lifted.
 */
object LiftSources extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = StreamingQueries.rewrite(plan)(lift)

  /** The plan below `from_changelog` is Spark's own stream. */
  private def lift(plan: LogicalPlan): LogicalPlan = plan match {
    case source: FromChangelog => source
    case _ =>
      val sources = mutable.ArrayBuffer.empty[LogicalPlan]
      val without = inSubqueries(plan.mapChildren(lift), take(_, sources))
      if (sources.isEmpty) without
      else {
        val first = LiftedSources(without.children.head, sources.toSeq)
        without.withNewChildren(first +: without.children.tail)
      }
  }

  private def take(plan: LogicalPlan, sources: mutable.ArrayBuffer[LogicalPlan]): LogicalPlan =
    plan match {
      case source: FromChangelog if source.streaming =>
        sources += source
        LiftedSource(sources.size - 1, source)
      case source: FromChangelog => source
      case other => inSubqueries(other.mapChildren(take(_, sources)), take(_, sources))
    }

  private def inSubqueries(plan: LogicalPlan, rule: LogicalPlan => LogicalPlan): LogicalPlan =
    plan.transformExpressions { case subquery: SubqueryExpression =>
      subquery.withNewPlan(rule(subquery.plan))
    }
}

/**
 * Undoes the analysis rules that hide parts of a query from Spark: lifted sources of subqueries,
 * and `OFFSET`. Runs before a batch is optimized.
 *
 * {{{
 *   Filter id IN (listquery)            Filter id IN (listquery)
 *   :  +- LiftedSource 0                :  +- FromChangelog u
 *   +- LiftedSources              =>    +- FromChangelog t
 *      :- FromChangelog t
 *      +- FromChangelog u
 * }}}
 *
 * From this point the query is an ordinary query, and Spark's rules run in Spark's order.
 */
object LowerSources extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.isInstanceOf[ToChangelog])) plan
    else {
      val lowered = plan.transformUpWithSubqueries {
        case SkipRows(count, child) => Offset(count, child)
        case node if node.children.headOption.exists(_.isInstanceOf[LiftedSources]) =>
          val lifted = node.children.head.asInstanceOf[LiftedSources]
          restoreSources(lifted, node.withNewChildren(lifted.query +: node.children.tail))
      }
      lowered.transformAllExpressionsWithSubqueries {
        case subquery: SubqueryExpression if subquery.isCorrelated =>
          subquery.withNewPlan(limitsOnSorts(subquery.plan))
      }
    }

  private def restoreSources(lifted: LiftedSources, plan: LogicalPlan): LogicalPlan =
    plan.transformExpressions { case subquery: SubqueryExpression =>
      subquery.withNewPlan(within(lifted, subquery.plan))
    }

  private def within(lifted: LiftedSources, plan: LogicalPlan): LogicalPlan = plan match {
    case LiftedSource(index, _) => lifted.sources(index)
    case other => restoreSources(lifted, other.mapChildren(within(lifted, _)))
  }

  /**
   * Moves limits directly above their sorts, which may use columns absent from the subquery's
   * output. Only then does Spark find the order for counting rows per outer row.
   */
  private def limitsOnSorts(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case Offset(count, Project(columns, sort: Sort)) => Project(columns, Offset(count, sort))
    case LocalLimit(count, Project(columns, sorted @ (_: Sort | Offset(_, _: Sort)))) =>
      Project(columns, LocalLimit(count, sorted))
    case GlobalLimit(count, Project(columns, limit: LocalLimit)) =>
      Project(columns, GlobalLimit(count, limit))
  }
}

/**
 * Hides `OFFSET` from Spark's check of streams. The check rejects every `OFFSET`, even over a
 * table.
 *
 * {{{
 *   ToChangelog streaming           ToChangelog streaming
 *   +- GlobalLimit 3                +- GlobalLimit 3
 *      +- Offset 2           =>        +- SkipRows 2
 *         +- Sort [fare]                  +- Sort [fare]
 * }}}
 */
object AcceptOffset extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = StreamingQueries.rewrite(plan)(accept)

  /**
   * The plan below `from_changelog` is Spark's own stream, and the check does not read
   * subqueries.
   */
  private def accept(plan: LogicalPlan): LogicalPlan = plan match {
    case _: FromChangelog => plan
    case Offset(count, child) => SkipRows(count, accept(child))
    case other => other.mapChildren(accept)
  }
}

/** The queries below the streaming `to_changelog`s of an analyzed plan. */
private[analysis] object StreamingQueries {
  def rewrite(plan: LogicalPlan)(rewritten: LogicalPlan => LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      plan.transformUp {
        case root: ToChangelog if root.streaming =>
          root.withNewChildren(Seq(rewritten(root.child)))
      }
    }
}

/**
 * Gives a source different columns inside and outside a subquery, and on both sides of a semi or
 * anti join.
 *
 * {{{
 *   Project [scalar-subquery [d#1 = outer(c#2)]]     Project [scalar-subquery [d#3 = outer(c#2)]]
 *   :  +- FromChangelog [d#1]                        :  +- Project [d#1 AS d#3]
 *   :                                          =>    :     +- FromChangelog [d#1]
 *   +- Project [d#1 AS c#2]                          +- Project [d#1 AS c#2]
 *      +- FromChangelog [d#1]                           +- FromChangelog [d#1]
 * }}}
 *
 * Spark does the same for its own tables. Three problems occur otherwise:
 *
 *   - `c` equals `d` once redundant aliases are gone, and the subquery compares `d` with
 *     itself.
 *   - A filter by a subquery stays above columns with ids of the subquery. Ids differ from
 *     batch to batch, because a batch with rows has an alias that Spark removes.
 *   - Spark pushes an unconditional semi or anti join below projections on its left, where the
 *     columns of the right side already exist.
 */
private[analysis] object SeparateSubqueries extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      separate(withSeparateSides(plan), Set.empty)
    }

  private def withSeparateSides(plan: LogicalPlan): LogicalPlan = plan.transformUpWithSubqueries {
    case join @ Join(left, right, LeftSemiOrAnti(_), _, _) =>
      val own = withOwnColumns(right, columnsOf(left))
      if (own eq right) join
      else join.copy(right = own).rewriteAttrs(AttributeMap(right.output.zip(own.output)))
  }

  /** Equal subqueries beside each other stay equal, for example in GROUP BY and SELECT. */
  private def separate(plan: LogicalPlan, around: Set[ExprId]): LogicalPlan = {
    val taken = around ++ columnsOf(plan)
    plan.transformAllExpressions { case subquery: SubqueryExpression =>
      val own = subquery match {
        case _: LateralSubquery if !subquery.isCorrelated => subquery.plan
        case _: LateralSubquery =>
          named(withOwnColumns(subquery.plan, taken), subquery.plan.output)
        case _ => withOwnColumns(subquery.plan, taken)
      }
      subquery.withNewPlan(separate(own, taken))
    }
  }

  private def withOwnColumns(plan: LogicalPlan, taken: Set[ExprId]): LogicalPlan = {
    val again = sources(plan).filter(_.output.exists(column => taken.contains(column.exprId)))
    if (again.isEmpty) plan
    else {
      plan.transformUpWithNewOutput {
        case source: FromChangelog if again.exists(_ eq source) =>
          val columns = source.output.map(_.newInstance())
          ReadSourcesOnce.readAs(source, columns) -> source.output.zip(columns)
      }
    }
  }

  private def columnsOf(plan: LogicalPlan): Set[ExprId] =
    sources(plan).flatMap(_.output).map(_.exprId).toSet

  /**
   * Returns the sources read under their own columns. Projections with marked columns are
   * skipped, because several readings may share a source object.
   */
  private def sources(plan: LogicalPlan): Seq[FromChangelog] = plan match {
    case Project(columns, _: FromChangelog) if columns.exists(ReadSourcesOnce.isMarked) => Nil
    case source: FromChangelog => Seq(source)
    case other => other.children.flatMap(sources)
  }

  private def named(plan: LogicalPlan, columns: Seq[Attribute]): LogicalPlan =
    if (plan.output.map(_.exprId) == columns.map(_.exprId)) plan
    else Project(RenameColumns(plan.output, columns), plan)
}
