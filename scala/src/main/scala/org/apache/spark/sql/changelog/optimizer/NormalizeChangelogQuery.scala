// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION

import org.apache.spark.sql.changelog.analysis.ReadSourcesOnce
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.inference.nodes.{StaticInference, StaticSide}
import org.apache.spark.sql.changelog.plans.{ChangelogStatic, FromChangelog, ToChangelog}

/**
 * Brings an optimized query into the few shapes that inference and rewriting know.
 *
 *   - functions of typed datasets are called for rows, and those of Python not within aggregates
 *   - each reading of a source has its own columns
 *   - parts that differ in what their readers leave out become equal, so that they are computed once
 *   - limits go below columns that hold subqueries
 *   - `IN` and `EXISTS` become joins, by Spark's own rule, which Spark itself would run later, and
 *     so do scalar subqueries; what only they have read is not kept
 *   - columns have names without expression ids
 *   - conditions on the time become [[org.apache.spark.sql.changelog.plans.TemporalFilter]]
 *   - filters on ranks, and limits, become [[org.apache.spark.sql.changelog.plans.Rank]]
 *   - groups are by what has equal bytes where it is equal
 *   - a sort without a limit goes: the rows of a changelog have no order
 *   - operators know what hints say about their state, and joins what hints say about their sides
 *   - static rows come once, unless they are only looked up
 *   - joins get keys of their inputs, and no filters on what they leave out themselves
 *   - inner joins on one key become one
 *   - a source gives only the columns that are read, so that no operator keeps others
 *   - columns can be NULL where what they are made of can: Spark's rules for `INTERSECT ALL` and their
 *     like forget that, and set it right later only
 */
object NormalizeChangelogQuery {

  def apply(root: ToChangelog): ToChangelog = {
    val called = joinSubqueries(root).mapChildren { child =>
      PullOutPythonFunctions(CallRowFunctions(child))
    }
    val joined = SparkRules.pruneColumns(called)
    val separated = ReadSourcesOnce
      .withoutMarks(joined)
      .mapChildren(child => SeparateSources(CompareSourcesByNumber(child)))
    val named = NameColumns(separated.mapChildren(WidenEqualParts(_)))
    HideSources.during(named)(recognized).asInstanceOf[ToChangelog]
  }

  /** By Spark's rule for those of predicates, and what Spark tidies up behind it. */
  private def joinSubqueries(query: LogicalPlan): LogicalPlan = {
    // the optimizer itself has made joins of some
    val root = KeepCalls.show(query)
    if (!root.containsPattern(PLAN_EXPRESSION)) root
    else {
      val placed = LiftSubqueryFilters(LimitBelowSubqueries(root))
      SparkRules.tidyJoins(JoinScalarSubqueries(SparkRules.joinPredicateSubqueries(placed)))
    }
  }

  private def recognized(plan: LogicalPlan): LogicalPlan = {
    val grouped = HideStaticRows.during(LiftSkew(RecognizeTemporalFilter(plan))) { changing =>
      val unsorted = RecognizeRank(changing).transformUp { case Sort(_, _, child, _) => child }
      GroupByCollationKey(unsorted)
    }
    val prepared = PrepareJoinInputs(InsertStaticRows(AssignSkew(grouped)))
    SparkRules.updateNullability(pruneSources(prepared))
  }

  private def pruneSources(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case project @ Project(_, source: FromChangelog) =>
      project.copy(child = prune(source, project.references))
    case project @ Project(_, filter @ Filter(_, source: FromChangelog)) =>
      val read = project.references ++ filter.references
      project.copy(child = filter.copy(child = prune(source, read)))
    case aggregate @ Aggregate(_, _, source: FromChangelog, _) =>
      aggregate.copy(child = prune(source, aggregate.references))
  }

  private def prune(source: FromChangelog, read: AttributeSet): FromChangelog = {
    val needed = read ++ AttributeSet(source.key)
    source.copy(output = source.output.filter(needed.contains))
  }
}

/**
 * Keeps rules for changelogs off what never changes: there limits stay limits, and sorts matter.
 * {{{
 *   Join                        Join                      Join
 *   :- orders                   :- orders                 :- orders
 *   +- GlobalLimit 3     =>     +- HiddenRows     =>      +- GlobalLimit 3
 *      +- Sort [rate]                                        +- Sort [rate]
 * }}}
 */
private[optimizer] object HideStaticRows {

  /** Applies `rules` to `plan`, but for its static parts. */
  def during(plan: LogicalPlan)(rules: LogicalPlan => LogicalPlan): LogicalPlan =
    rules(hide(plan)).transformUp { case HiddenRows(hidden) => hidden }

  private def hide(plan: LogicalPlan): LogicalPlan = plan match {
    case source: FromChangelog if source.streaming => source
    case _ if StaticInference.isStatic(plan) => HiddenRows(plan)
    case _ => plan.mapChildren(hide)
  }
}

/** Stands for static rows. */
private[optimizer] case class HiddenRows(hidden: LogicalPlan) extends LeafNode {
  override def output: Seq[Attribute] = hidden.output
  override def maxRows: Option[Long] = hidden.maxRows
}

/**
 * Keeps rules from what lies below `from_changelog`: rows of a stream, which Spark runs. A limit
 * there is one of the stream, not of the table.
 * {{{
 *   FromChangelog                FromChangelog               FromChangelog
 *   +- GlobalLimit 3     =>      +- HiddenRows       =>      +- GlobalLimit 3
 *      +- words                                                 +- words
 * }}}
 */
private[optimizer] object HideSources {

  /** Applies `rules` to `plan`, but for the plans below its sources. */
  def during(plan: LogicalPlan)(rules: LogicalPlan => LogicalPlan): LogicalPlan =
    rules(plan.transformUp {
      case source: FromChangelog if source.streaming =>
        source.copy(child = HiddenRows(source.child))
    }).transformUp { case source: FromChangelog => source.mapChildren(shown) }

  private def shown(plan: LogicalPlan): LogicalPlan = plan match {
    case HiddenRows(hidden) => hidden
    case other => other
  }
}

/**
 * Lets plans be compared by which sources they read, as `ReadSourcesOnce` has told them apart.
 * Only now: until then plans are also compared with those of other queries, whose sources have numbers
 * of their own.
 */
object CompareSourcesByNumber extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case source: FromChangelog => source.copy(isKnownByNumber = true)
  }
}

/**
 * Makes static rows that stand beside changing ones come once, in the first batch.
 * {{{
 *   Union                               Union
 *   :- Aggregate [word]        =>       :- Aggregate [word]
 *   +- LocalRelation                    +- ChangelogStatic
 *                                          +- LocalRelation
 * }}}
 * A static side of a join is left alone where the join only looks rows up in it; one whose rows
 * come out by themselves is kept in state like a changing one.
 */
object InsertStaticRows extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    // what lies below a source is Spark's own
    case source: FromChangelog => source
    case join: Join if StaticSide.looksUp(join) =>
      join.mapChildren(side => if (StaticInference.isStatic(side)) side else apply(side))
    case _ =>
      plan.mapChildren { input =>
        if (StaticInference.isStatic(input)) ChangelogStatic(input) else apply(input)
      }
  }
}
