// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{AS_OF_JOIN, LATERAL_JOIN}

import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.inference.EquiJoin
import org.apache.spark.sql.changelog.inference.nodes.StaticInference
import org.apache.spark.sql.changelog.plans.{
  LookupJoin, LookupTable, PointLookup, Skew, TemporalJoin, ToChangelog
}

/**
 * Recognizes joins of each row with one version of a table, at the row's time.
 *
 * {{{
 *   LateralJoin Inner                                    Project [*, r.rate]
 *   :  +- GlobalLimit 1                                  +- TemporalJoin [r.cur = o.cur] [r.since <= o.time]
 *   :     +- Sort [r.since DESC]                            :- orders o
 *   :        +- Filter r.cur = outer(o.cur)       =>        +- rates r
 *   :           AND r.since <= outer(o.time)
 *   :           +- rates r
 *   +- orders o
 * }}}
 *
 * Spark would join each left row with all earlier versions and rank the pairs. Spark's `AsOfJoin`
 * is an equivalent join. Joins whose version depends on more than the time stay unchanged and
 * become joins by Spark's own rules. Queries over static tables stay unchanged too.
 */
object RecognizeTemporalJoin extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.containsAnyPattern(LATERAL_JOIN, AS_OF_JOIN)) plan
    else {
      StreamingQueries.rewrite(plan)(query => recognize(SparkRules.inlineCommonTables(query)))
    }

  private def recognize(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case join @ LateralJoin(left, subquery: LateralSubquery, _, _)
        if subquery.joinCond.isEmpty && !areStatic(left, subquery.plan) =>
      ofLateral(join, subquery.plan).getOrElse(join)
    case join: AsOfJoin if !areStatic(join.left, join.right) => ofAsOf(join).getOrElse(join)
  }

  private def areStatic(plans: LogicalPlan*): Boolean = plans.forall(StaticInference.isStatic)

  private def ofLateral(join: LateralJoin, subquery: LogicalPlan): Option[LogicalPlan] = {
    val plan = SparkRules.withoutNames(subquery)
    for {
      query <- VersionSubquery(plan, join.left)
      order <- query.order.headOption
      joinType: JoinType = if (join.joinType == LeftOuter) LeftOuter else Inner
      found <- temporalJoin(
        joinType,
        join.left,
        query.versions,
        query.conditions,
        order.child,
        isForward = order.direction == Ascending,
        query.order.tail)
    } yield {
      val computed = AttributeMap(query.outputs.collect { case alias: Alias =>
        alias.toAttribute -> alias.child
      })
      val on = join.condition.toSeq
        .flatMap(splitConjunctivePredicates)
        .map(_.transform { case column: Attribute => computed.getOrElse(column, column) })
      val checked = found.copy(condition = (found.condition ++ on).reduceOption(And(_, _)))
      Project(join.left.output ++ query.outputs.map(shown(_, checked)), checked)
    }
  }

  /** Without a version, the subquery's columns are NULL. */
  private def shown(column: NamedExpression, join: TemporalJoin): NamedExpression = column match {
    case alias @ Alias(value, name) if join.joinType == LeftOuter =>
      val computed = If(IsNotNull(join.rightTime), value, Literal(null, value.dataType))
      Alias(computed, name)(alias.exprId, alias.qualifier, alias.explicitMetadata)
    case other => other
  }

  private def ofAsOf(join: AsOfJoin): Option[LogicalPlan] = {
    val (asOf +: tolerance) = splitConjunctivePredicates(join.asOfCondition)
    val conditions = tolerance ++ join.condition.toSeq.flatMap(splitConjunctivePredicates)
    def found(right: Expression, isForward: Boolean) = temporalJoin(
      join.joinType,
      join.left,
      join.right,
      asOf +: conditions,
      right,
      isForward,
      Nil)
    asOf match {
      case GreaterThanOrEqual(_, right) => found(right, isForward = false)
      case GreaterThan(_, right) => found(right, isForward = false)
      case LessThanOrEqual(_, right) => found(right, isForward = true)
      case LessThan(_, right) => found(right, isForward = true)
      case _ => None
    }
  }

  private def temporalJoin(
      joinType: JoinType,
      left: LogicalPlan,
      right: LogicalPlan,
      conditions: Seq[Expression],
      rightTime: Expression,
      isForward: Boolean,
      ties: Seq[SortOrder]): Option[TemporalJoin] = {
    def isOf(expression: Expression, side: LogicalPlan) =
      expression.references.subsetOf(side.outputSet)
    val equi = EquiJoin(
      Join(left, right, Inner, conditions.reduceOption(And(_, _)), JoinHint.NONE))
    val (ofRight, others) = equi.rest.partition(isOf(_, right))
    val (ofLeft, mixed) = others.partition(isOf(_, left))
    // Normalizes comparisons of a version's time with left times, with the version on the left.
    val comparisons = mixed.map {
      case e @ LessThanOrEqual(a, b) => compared(e, a, b, rightTime, isBefore = true)
      case e @ LessThan(a, b) => compared(e, a, b, rightTime, isBefore = true)
      case e @ GreaterThanOrEqual(a, b) => compared(e, a, b, rightTime, isBefore = false)
      case e @ GreaterThan(a, b) => compared(e, a, b, rightTime, isBefore = false)
      case _ => None
    }
    val (bounds, limits) = comparisons.flatten.partition(_.isBefore != isForward)
    bounds match {
      case Seq(bound)
          if comparisons.forall(_.isDefined) && isOf(rightTime, right) &&
            rightTime.references.nonEmpty && bound.leftTime.references.nonEmpty &&
            (bound +: limits).forall(found => isOf(found.leftTime, left)) &&
            ties.forall(tie => isOf(tie, right)) && conditions.forall(VersionSubquery.isPlain) &&
            RowOrdering.isOrderable(rightTime.dataType) =>
        Some(
          TemporalJoin(
            joinType,
            equi.key(left = true),
            equi.key(left = false),
            equi.matchesNull,
            bound.leftTime,
            rightTime,
            isForward,
            bound.allowsEqual,
            ties,
            (ofLeft ++ limits.map(_.condition)).reduceOption(And(_, _)),
            left,
            ofRight.reduceOption(And(_, _)).map(Filter(_, right)).getOrElse(right)))
      case _ => None
    }
  }

  /** A comparison of a version's time with a time of the left row. */
  private case class Comparison(
      condition: Expression,
      leftTime: Expression,
      isBefore: Boolean,
      allowsEqual: Boolean)

  private def compared(
      condition: BinaryComparison,
      a: Expression,
      b: Expression,
      rightTime: Expression,
      isBefore: Boolean): Option[Comparison] = {
    val allowsEqual = condition match {
      case _: LessThanOrEqual | _: GreaterThanOrEqual => true
      case _ => false
    }
    if (a.semanticEquals(rightTime)) Some(Comparison(condition, b, isBefore, allowsEqual))
    else if (b.semanticEquals(rightTime)) Some(Comparison(condition, a, !isBefore, allowsEqual))
    else None
  }
}

/**
 * Recognizes joins with a table as of each row's arrival.
 *
 * {{{
 *   Join Inner, o.cur = r.cur               LookupJoin Inner, o.cur = r.cur
 *   :- orders o                      =>     :- orders o
 *   +- LookupTable                          +- rates r
 *      +- rates r
 * }}}
 *
 * A static table is joined in the usual way, and a table of a database by the keys of a batch. `lookup` is an error anywhere except on the right
 * side of such a join. Batch queries stay unchanged.
 */
object RecognizeLookupJoin extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(isChangelogNode)) plan
    else {
      AnalysisHelper.allowInvokingTransformsInAnalyzer {
        plan.transformUp {
          case root: ToChangelog if isChangelogNode(root) =>
            val found = SparkRules.inlineCommonTables(root.child).transformUp(recognize)
            root.copy(child = check(found))
        }
      }
    }

  private def isChangelogNode(plan: LogicalPlan): Boolean = plan match {
    case root: ToChangelog => root.streaming && hasLookup(root)
    case _ => false
  }

  private def hasLookup(plan: LogicalPlan): Boolean =
    plan.collectWithSubqueries { case lookup: LookupTable => lookup }.nonEmpty

  private val recognize: PartialFunction[LogicalPlan, LogicalPlan] = {
    case LookupTable(table) if StaticInference.isStatic(table) => PointLookup.mark(table)
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
    if (hasLookup(plan)) throw analysis("CHANGELOG_LOOKUP_MISPLACED") else plan
}
