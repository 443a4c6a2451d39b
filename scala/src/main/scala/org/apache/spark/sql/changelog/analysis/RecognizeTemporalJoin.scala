// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.analysis.{EliminateSubqueryAliases, EliminateView}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.InlineCTE
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{Inner, JoinType, LeftOuter}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{AS_OF_JOIN, LATERAL_JOIN, OUTER_REFERENCE}

import org.apache.spark.sql.changelog.inference.EquiJoin
import org.apache.spark.sql.changelog.inference.nodes.StaticInference
import org.apache.spark.sql.changelog.plans.{TemporalJoin, ToChangelog}

/**
 * Recognizes joins of each row with one version of another table, that of the row's time.
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
 * Spark would join each time of a left row with all versions before it and rank those. Spark's
 * `AsOfJoin` is the same join by another name. Leaves alone joins whose version is chosen by
 * anything else than its time, which become joins by Spark's own rules, and queries over what never
 * changes.
 */
object RecognizeTemporalJoin extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.containsAnyPattern(LATERAL_JOIN, AS_OF_JOIN)) plan
    else {
      AnalysisHelper.allowInvokingTransformsInAnalyzer {
        plan.transformUp {
          case root: ToChangelog if root.streaming =>
            root.copy(child = recognize(InlineCTE(alwaysInline = true)(root.child)))
        }
      }
    }

  private def recognize(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case join @ LateralJoin(left, subquery: LateralSubquery, _, _)
        if subquery.joinCond.isEmpty && !areStatic(left, subquery.plan) =>
      ofLateral(join, subquery.plan).getOrElse(join)
    case join: AsOfJoin if !areStatic(join.left, join.right) => ofAsOf(join).getOrElse(join)
  }

  private def areStatic(plans: LogicalPlan*): Boolean = plans.forall(StaticInference.isStatic)

  /**
   * A subquery taken apart, each part over the columns of `base`.
   *
   * @param outputs
   *   what the subquery gives
   */
  private case class Parts(
      outputs: Seq[NamedExpression],
      isLimited: Boolean,
      order: Seq[SortOrder],
      conditions: Seq[Expression],
      base: LogicalPlan)

  private def ofLateral(join: LateralJoin, subquery: LogicalPlan): Option[LogicalPlan] = {
    val plan = EliminateView(EliminateSubqueryAliases(subquery))
    // both may read one table, so that columns of the left row need names of their own at first
    val outer = AttributeMap(join.left.output.map(column => column -> column.newInstance()))
    for {
      taken <- takeApart(Parts(plan.output, isLimited = false, Nil, Nil, plan), outer)
      parts = separate(taken, outer)
      order <- parts.order.headOption
      joinType: JoinType = if (join.joinType == LeftOuter) LeftOuter else Inner
      found <- temporalJoin(
        joinType,
        join.left,
        parts.base,
        parts.conditions,
        order.child,
        isForward = order.direction == Ascending,
        parts.order.tail)
    } yield {
      val computed = AttributeMap(parts.outputs.collect { case alias: Alias =>
        alias.toAttribute -> alias.child
      })
      val on = join.condition.toSeq
        .flatMap(splitConjunctivePredicates)
        .map(_.transform { case column: Attribute => computed.getOrElse(column, column) })
      val checked = found.copy(condition = (found.condition ++ on).reduceOption(And(_, _)))
      Project(join.left.output ++ parts.outputs.map(shown(_, checked)), checked)
    }
  }

  /** What the subquery computes of a version is NULL where there is none. */
  private def shown(column: NamedExpression, join: TemporalJoin): NamedExpression = column match {
    case alias @ Alias(value, name) if join.joinType == LeftOuter =>
      val computed = If(IsNotNull(join.rightTime), value, Literal(null, value.dataType))
      Alias(computed, name)(alias.exprId, alias.qualifier, alias.explicitMetadata)
    case other => other
  }

  private def takeApart(parts: Parts, outer: AttributeMap[Attribute]): Option[Parts] = {
    def inner[E <: Expression](expression: E): E =
      expression
        .transform { case OuterReference(column) => outer(column.toAttribute) }
        .asInstanceOf[E]
    parts.base match {
      case Project(columns, child) if columns.forall(isPlain) && reads(parts.base) =>
        val aliases = AttributeMap(columns.collect { case alias: Alias =>
          alias.toAttribute -> alias
        })
        def below[E <: Expression](expression: E): E = expression
          .transform { case column: Attribute =>
            aliases.get(column).map(alias => inner(alias.child)).getOrElse(column)
          }
          .asInstanceOf[E]
        val outputs = parts.outputs.map {
          case column: Attribute =>
            aliases
              .get(column)
              .map { alias =>
                Alias(inner(alias.child), alias.name)(column.exprId, column.qualifier)
              }
              .getOrElse(column)
          case alias => below(alias)
        }
        takeApart(
          Parts(
            outputs,
            parts.isLimited,
            parts.order.map(below(_)),
            parts.conditions.map(below(_)),
            child),
          outer)
      case GlobalLimit(IntegerLiteral(1), LocalLimit(IntegerLiteral(1), child))
          if !parts.isLimited =>
        takeApart(parts.copy(isLimited = true, base = child), outer)
      case Sort(order, true, child, _) if parts.isLimited && parts.order.isEmpty =>
        takeApart(parts.copy(order = order.map(inner(_)), base = child), outer)
      case Filter(condition, child)
          if parts.order.nonEmpty && condition.deterministic && reads(parts.base) =>
        val conditions = splitConjunctivePredicates(condition).map(inner(_))
        takeApart(parts.copy(conditions = parts.conditions ++ conditions, base = child), outer)
      case base if parts.order.nonEmpty && !reads(base) => Some(parts)
      case _ => None
    }
  }

  private def isPlain(expression: Expression): Boolean =
    expression.deterministic && !expression.exists(_.isInstanceOf[SubqueryExpression])

  /** Whether a subquery's part looks at the left row, or is above what picks a version. */
  private def reads(plan: LogicalPlan): Boolean = plan.exists {
    case _: GlobalLimit => true
    case node => node.expressions.exists(_.containsPattern(OUTER_REFERENCE))
  }

  /** Gives columns of the left row their names back, and others to columns that have the same. */
  private def separate(parts: Parts, outer: AttributeMap[Attribute]): Parts = {
    val renamed = AttributeMap(parts.base.output.filter(outer.contains).map { column =>
      column -> Alias(column, column.name)()
    })
    val names = AttributeMap(
      outer.toSeq.map(_.swap) ++ renamed.toSeq.map { case (column, alias) =>
        column -> alias.toAttribute
      })
    def own[E <: Expression](expression: E): E =
      expression
        .transform { case column: Attribute => names.getOrElse(column, column) }
        .asInstanceOf[E]
    Parts(
      parts.outputs.map(own(_)),
      parts.isLimited,
      parts.order.map(own(_)),
      parts.conditions.map(own(_)),
      if (renamed.isEmpty) parts.base
      else Project(parts.base.output.map(c => renamed.getOrElse(c, c)), parts.base))
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
    // how versions compare with times of left rows: as if the version stood on the left
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
            ties.forall(tie => isOf(tie, right)) && conditions.forall(isPlain) &&
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

  /** A comparison of a version's time: whether it is before a time of the left row. */
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
