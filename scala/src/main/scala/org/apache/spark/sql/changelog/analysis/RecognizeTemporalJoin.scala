// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{AS_OF_JOIN, LATERAL_JOIN, OUTER_REFERENCE}

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

/**
 * A decomposed subquery that selects one version for a left row.
 *
 * {{{
 *   GlobalLimit 1                                isLimited
 *   +- Sort [r.since DESC]                       order        [r.since DESC]
 *      +- Filter r.cur = outer(o.cur)       =>   conditions   r.cur = outer(o.cur)
 *         +- rates r                             versions     rates r
 * }}}
 *
 * @param outputs
 *   the output columns of the subquery
 * @param isLimited
 *   whether the subquery returns one row
 * @param versions
 *   the remaining plan; all expressions read its columns and the columns of the left row
 */
private[analysis] final case class VersionSubquery(
    outputs: Seq[NamedExpression],
    isLimited: Boolean,
    order: Seq[SortOrder],
    conditions: Seq[Expression],
    versions: LogicalPlan)
    extends PredicateHelper {
  import VersionSubquery._

  /** Removes the nodes above the versions, if they only select a version. */
  private def decomposed: Option[VersionSubquery] = versions match {
    case Project(columns, child) if columns.forall(isPlain) && belongsToQuery(versions) =>
      withoutProject(columns, child).decomposed
    case GlobalLimit(IntegerLiteral(1), LocalLimit(IntegerLiteral(1), child)) if !isLimited =>
      copy(isLimited = true, versions = child).decomposed
    case Sort(sorted, true, child, _) if isLimited && order.isEmpty =>
      copy(order = sorted, versions = child).decomposed
    case Filter(condition, child)
        if order.nonEmpty && condition.deterministic && belongsToQuery(versions) =>
      val more = splitConjunctivePredicates(condition)
      copy(conditions = conditions ++ more, versions = child).decomposed
    case _ if order.nonEmpty && !belongsToQuery(versions) => Some(this)
    case _ => None
  }

  /** Replaces a projection's columns by their expressions. */
  private def withoutProject(
      columns: Seq[NamedExpression],
      child: LogicalPlan): VersionSubquery = {
    val aliases = AttributeMap(columns.collect { case alias: Alias =>
      alias.toAttribute -> alias
    })
    val computed: PartialFunction[Expression, Expression] = {
      case column: Attribute if aliases.contains(column) => aliases(column).child
    }
    VersionSubquery(
      outputs.map {
        case column: Attribute if aliases.contains(column) =>
          val alias = aliases(column)
          Alias(alias.child, alias.name)(column.exprId, column.qualifier)
        case output => replaced(output, computed)
      },
      isLimited,
      order.map(replaced(_, computed)),
      conditions.map(replaced(_, computed)),
      child)
  }

  /**
   * Replaces outer references by plain columns of the left row, and renames versions' columns
   * with the same ids.
   */
  private def beside(left: LogicalPlan): VersionSubquery = {
    val renamed = AttributeMap(versions.output.filter(left.outputSet.contains).map { column =>
      column -> Alias(column, column.name)()
    })
    val plain: PartialFunction[Expression, Expression] = {
      case OuterReference(column) => column.toAttribute
      case column: Attribute if renamed.contains(column) => renamed(column).toAttribute
    }
    VersionSubquery(
      outputs.map(replaced(_, plain)),
      isLimited,
      order.map(replaced(_, plain)),
      conditions.map(replaced(_, plain)),
      if (renamed.isEmpty) versions
      else Project(versions.output.map(c => renamed.getOrElse(c, c)), versions))
  }
}

private[analysis] object VersionSubquery {

  /**
   * Returns the decomposed subquery `plan` of a lateral join with `left`, if an order selects the
   * version.
   */
  def apply(plan: LogicalPlan, left: LogicalPlan): Option[VersionSubquery] =
    VersionSubquery(plan.output, isLimited = false, Nil, Nil, plan).decomposed.map(_.beside(left))

  /** Whether an expression depends only on its row, deterministically. */
  def isPlain(expression: Expression): Boolean =
    expression.deterministic && !expression.exists(_.isInstanceOf[SubqueryExpression])

  /** Whether a plan contains the selection of a version, or reads the left row. */
  private def belongsToQuery(plan: LogicalPlan): Boolean = plan.exists {
    case _: GlobalLimit => true
    case node => node.expressions.exists(_.containsPattern(OUTER_REFERENCE))
  }

  private def replaced[E <: Expression](
      expression: E,
      rule: PartialFunction[Expression, Expression]): E =
    expression.transform(rule).asInstanceOf[E]
}
