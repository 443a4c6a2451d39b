// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.ExistenceJoin
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.compat.{SparkPlanMerger, SparkRules}
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.plans.{FromChangelog, Skew, ToChangelog}

/**
 * Makes parts of a query equal again after Spark has pruned them for each reader.
 *
 * {{{
 *   Join s = max                               Join s = max
 *   :- Aggregate [k] [k, sum(v) AS s]          :- Aggregate [k] [k, sum(v) AS s]
 *   +- Aggregate [max(s)]                =>    +- Aggregate [max(s)]
 *      +- Aggregate [k] [sum(v) AS s]             +- Project [s]
 *                                                    +- Aggregate [k] [k, sum(v) AS s]
 * }}}
 *
 * Two aggregates over equal groups, or two joins over equal rows, are merged by Spark's own
 * merger, see [[SparkPlanMerger]]. Spark may have pushed a filter on groups below one of two
 * aggregates. The filter is lifted again, because the second aggregate stores all groups anyway.
 * Parts with different filters, sorts or limits stay unchanged, and so do parts with hints. The
 * parts of two queries are compared if the readers of both ask for the same changes. Otherwise
 * the wider parts would not be shared.
 */
object WidenEqualParts extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!conf.getConf(ChangelogConf.SHARE_EQUAL_PARTS_ENABLED)) plan
    else widen(plan)

  private def widen(plan: LogicalPlan): LogicalPlan = {
    val sources = plan.collect { case source: FromChangelog => source.number }
    // Each step makes two parts equal, or lets one part replace several.
    val widened = Iterator
      .iterate(Option(plan))(_.flatMap(widenOne))
      .take(sources.size * sources.size + 1)
      .takeWhile(_.isDefined)
      .flatten
      .foldLeft(plan)((_, last) => last)
    if (widened eq plan) plan
    else
      plan.withNewChildren(widened.children.map(_.mapChildren(SeparateSources.withoutAliases(_))))
  }

  /** Returns the plan with one more pair of equal parts, if any. */
  private def widenOne(plan: LogicalPlan): Option[LogicalPlan] = {
    val parts = plan.collect { case root: ToChangelog =>
      candidates(root.child).map(part => (part, (root.mode, root.emission)))
    }.flatten
    val pairs = for {
      ((first, readBy), place) <- parts.iterator.zipWithIndex
      (second, alsoReadBy) <- parts.iterator.drop(place + 1)
      if readBy == alsoReadBy
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
      // Spark cannot compare the inputs of Python functions. Spark also gives copies of an
      // existence join no flag column of their own.
      node.isInstanceOf[Skew] || isExistence(node) ||
      node.expressions.exists(_.exists(_.isInstanceOf[UnevaluableAggregateFunc]))
    }

  private def isExistence(node: LogicalPlan): Boolean = node match {
    case Join(_, _, _: ExistenceJoin, _, _) => true
    case _ => false
  }

  private def sourcesOf(part: LogicalPlan): Seq[Int] =
    part.collect { case source: FromChangelog if source.number > 0 => source.number }.sorted

  /** Returns replacements of two parts with one common plan. */
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
   * Returns a merged part without aliases, and the plain column behind each of its columns. Spark
   * might remove an alias at only one of the two places.
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

  /** A part, and the filters lifted above the part. */
  private case class Lifted(part: LogicalPlan, filters: Seq[Expression], output: Seq[Attribute]) {

    /** Returns the projection of `merged` with the output of this part. */
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

  /** Lifts group filters present below only one of two aggregates. */
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

  /** Returns the filters below an aggregate that read only grouping columns. */
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
      // A filter above the aggregate needs its groups in the output.
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

  /** Replaces the columns of a group filter by their positions among the groups. */
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
