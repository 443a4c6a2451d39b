// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.ExistenceJoin
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.compat.{SparkPlanMerger, SparkRules}
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.plans.{FromChangelog, Skew}

/**
 * Makes parts of a query equal that Spark's optimizer has cut to what each reader wants.
 * {{{
 *   Join s = max                               Join s = max
 *   :- Aggregate [k] [k, sum(v) AS s]          :- Aggregate [k] [k, sum(v) AS s]
 *   +- Aggregate [max(s)]                =>    +- Aggregate [max(s)]
 *      +- Aggregate [k] [sum(v) AS s]             +- Project [s]
 *                                                    +- Aggregate [k] [k, sum(v) AS s]
 * }}}
 * What two aggregates over the same groups, or two joins over the same rows, give to their readers is
 * merged by Spark's own, see [[SparkPlanMerger]]. Filters on groups, which Spark has moved below one of two aggregates, are
 * lifted again: the other keeps all groups in any case. Leaves alone parts whose rows are filtered
 * otherwise, sorted or limited, and those that a hint says something of.
 */
object WidenEqualParts extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!conf.getConf(ChangelogConf.SHARE_EQUAL_PARTS_ENABLED)) plan
    else {
      val sources = plan.collect { case source: FromChangelog => source.number }
      // each time two parts become equal, or one of them does what several did
      val widened = Iterator
        .iterate(Option(plan))(_.flatMap(widenOne))
        .take(sources.size * sources.size + 1)
        .takeWhile(_.isDefined)
        .flatten
        .foldLeft(plan)((_, last) => last)
      if (widened eq plan) plan else SeparateSources.withoutAliases(widened)
    }

  /** The plan in which one more pair of parts is equal, if there is one. */
  private def widenOne(plan: LogicalPlan): Option[LogicalPlan] = {
    val parts = candidates(plan)
    val pairs = for {
      first <- parts.iterator
      second <- parts.dropWhile(_ ne first).iterator.drop(1)
      if first.getClass == second.getClass && sourcesOf(first) == sourcesOf(second)
      if first.canonicalized != second.canonicalized
      merged <- merge(first, second)
    } yield plan.transformDown {
      case part if part eq first => merged._1
      case part if part eq second => merged._2
    }
    pairs.nextOption()
  }

  private def candidates(plan: LogicalPlan): Seq[LogicalPlan] = plan match {
    case _: FromChangelog => Nil
    case (_: Aggregate | _: Join) if mayBeShared(plan) =>
      plan +: plan.children.flatMap(candidates)
    case _ => plan.children.flatMap(candidates)
  }

  private def mayBeShared(part: LogicalPlan): Boolean =
    part.deterministic && sourcesOf(part).nonEmpty && !part.exists { node =>
      // Spark can't say what a function of Python is made of, and gives no copy of a join a name
      // of its own for whether there was a match
      node.isInstanceOf[Skew] || isExistence(node) ||
      node.expressions.exists(_.exists(_.isInstanceOf[UnevaluableAggregateFunc]))
    }

  private def isExistence(node: LogicalPlan): Boolean = node match {
    case Join(_, _, _: ExistenceJoin, _, _) => true
    case _ => false
  }

  private def sourcesOf(part: LogicalPlan): Seq[Int] =
    part.collect { case source: FromChangelog if source.number > 0 => source.number }.sorted

  /** Replacements of two parts that share one plan. */
  private def merge(
      first: LogicalPlan,
      second: LogicalPlan): Option[(LogicalPlan, LogicalPlan)] = {
    val (left, right) = liftFilters(first, second)
    SparkPlanMerger(left.part, right.part).map { both =>
      val (merged, columns) = withoutAliases(both.plan)
      val copy = SparkRules.withNewColumns(merged)
      val known = AttributeMap(both.plan.output.zip(columns))
      val copied = AttributeMap(merged.output.zip(copy.output))
      val first = left.reading(merged, known)
      val second =
        right.reading(copy, column => copied(columns(both.places(column))))
      (first, second)
    }
  }

  /**
   * A merged part and, for each of its columns, the one it is without its alias. Spark removes an
   * alias where nothing is in the way, which need not be so at both places.
   */
  private def withoutAliases(merged: LogicalPlan): (LogicalPlan, Seq[Attribute]) = {
    val (plain, columns) = merged match {
      case aggregate: Aggregate =>
        val results = aggregate.aggregateExpressions.map {
          case alias @ Alias(group: Attribute, _) if alias.metadata == group.metadata => group
          case other => other
        }
        val distinct = results.distinctBy(_.exprId)
        (aggregate.copy(aggregateExpressions = distinct), results.map(_.toAttribute))
      case other => (other, other.output)
    }
    (SeparateSources.withoutAliases(plain), columns)
  }

  /** A part, and the filters on its rows that were lifted above it. */
  private case class Lifted(part: LogicalPlan, filters: Seq[Expression], output: Seq[Attribute]) {

    /** The projection of `merged` that reads as this part did. */
    def reading(merged: LogicalPlan, columnOf: Attribute => Attribute): LogicalPlan = {
      val filtered = filters
        .map(_.transform { case column: Attribute => columnOf(column) })
        .reduceOption(And(_, _))
        .map(Filter(_, merged))
        .getOrElse(merged)
      val columns = output.map { column =>
        val read = columnOf(column)
        if (read.exprId == column.exprId) read
        else Alias(read, column.name)(exprId = column.exprId)
      }
      if (columns == filtered.output) filtered else Project(columns, filtered)
    }
  }

  /** Lifts what only one of two aggregates says about its groups. */
  private def liftFilters(first: LogicalPlan, second: LogicalPlan): (Lifted, Lifted) =
    (first, second) match {
      case (one: Aggregate, other: Aggregate)
          if one.groupingExpressions.size == other.groupingExpressions.size =>
        val (mine, others) = (groupFilters(one), groupFilters(other))
        def only(
            filters: Seq[Expression],
            of: Aggregate,
            than: Seq[Expression],
            in: Aggregate) = {
          val known = than.map(byPosition(_, in))
          filters.filterNot(filter => known.contains(byPosition(filter, of)))
        }
        val (mineOnly, othersOnly) =
          (only(mine, one, others, other), only(others, other, mine, one))
        val eitherKeepsAll =
          mineOnly.forall(_.isInstanceOf[IsNotNull]) ||
            othersOnly.forall(_.isInstanceOf[IsNotNull])
        if (eitherKeepsAll) (lift(one, mineOnly), lift(other, othersOnly))
        else (Lifted(one, Nil, one.output), Lifted(other, Nil, other.output))
      case _ => (Lifted(first, Nil, first.output), Lifted(second, Nil, second.output))
    }

  /** The filters below an aggregate that read nothing but the columns it groups by. */
  private def groupFilters(aggregate: Aggregate): Seq[Expression] = {
    val groups = AttributeSet(aggregate.groupingExpressions.collect { case a: Attribute => a })
    def below(plan: LogicalPlan): Seq[Expression] = plan match {
      case Project(_, child) => below(child)
      case Filter(condition, child) =>
        splitConjunctivePredicates(condition).filter(filter =>
          filter.references.nonEmpty && filter.references.subsetOf(groups)) ++ below(child)
      case _ => Nil
    }
    below(aggregate.child)
  }

  private def lift(aggregate: Aggregate, filters: Seq[Expression]): Lifted =
    if (filters.isEmpty) Lifted(aggregate, Nil, aggregate.output)
    else {
      def without(plan: LogicalPlan): LogicalPlan = plan match {
        case project: Project => project.copy(child = without(project.child))
        case filter @ Filter(condition, child) =>
          splitConjunctivePredicates(condition)
            .filterNot(part => filters.exists(_ eq part))
            .reduceOption(And(_, _))
            .map(kept => filter.copy(condition = kept, child = without(child)))
            .getOrElse(without(child))
        case other => other
      }
      // a group can be filtered by what stands in the output
      val read = AttributeSet(filters.flatMap(_.references)).toSeq
      val shown = read.map { group =>
        group -> aggregate.aggregateExpressions.collectFirst {
          case same: Attribute if same.semanticEquals(group) => same
          case named @ Alias(column: Attribute, _) if column.semanticEquals(group) =>
            named.toAttribute
        }
      }
      val missing = shown.collect { case (group, None) => group }
      val columns = AttributeMap(shown.map { case (group, column) =>
        group -> column.getOrElse(group)
      })
      val lifted = filters.map(_.transform { case column: Attribute => columns(column) })
      Lifted(
        aggregate.copy(
          aggregateExpressions = aggregate.aggregateExpressions ++ missing,
          child = without(aggregate.child)),
        lifted,
        aggregate.output)
    }

  /** A filter on groups, with the positions of what it reads among them. */
  private def byPosition(filter: Expression, aggregate: Aggregate): Expression = {
    val groups = aggregate.groupingExpressions
    filter.transform { case column: Attribute =>
      BoundReference(
        groups.indexWhere(_.semanticEquals(column)),
        column.dataType,
        nullable = true)
    }.canonicalized
  }
}
