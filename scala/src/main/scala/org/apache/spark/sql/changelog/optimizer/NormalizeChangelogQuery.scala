// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions.{Ascending, Attribute, AttributeSet, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION

import org.apache.spark.sql.changelog.OutputMode
import org.apache.spark.sql.changelog.analysis.ReadSourcesOnce
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.inference.nodes.{StaticInference, StaticSide}
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.plans.{ChangelogStatic, FromChangelog, ToChangelog}

/**
 * Normalizes an optimized query to the few shapes known to inference and rewriting.
 *
 *   - Functions of typed datasets are called for rows. Python functions are called outside
 *     aggregates.
 *   - Each reading of a source has its own columns.
 *   - Parts with differences only in pruned columns become equal, for a single computation.
 *   - Limits move below columns with subqueries.
 *   - `IN` and `EXISTS` become joins, by a rule that Spark runs later. Scalar subqueries become
 *     joins too. Columns read only by subqueries are pruned.
 *   - Column names lose their expression ids.
 *   - Conditions on the current time become
 *     [[org.apache.spark.sql.changelog.plans.TemporalFilter]].
 *   - Filters on ranks, and limits, become [[org.apache.spark.sql.changelog.plans.Rank]].
 *   - Grouping columns have equal bytes for equal values.
 *   - Sorts without a limit disappear, because the rows of a changelog have no order. In mode append, a sort by
 *     event time at the root becomes the order of emission.
 *   - Hints become properties of operators and of join sides.
 *   - Static rows are inserted once, unless a join only looks them up.
 *   - Join inputs keep an upsert key, and lose null filters implied by the join.
 *   - A source emits only columns with a reader, so operators store nothing else.
 *   - Columns become nullable if their inputs are. Spark's rules for `INTERSECT ALL` and
 *     similar nodes forget this, and correct it only later.
 */
object NormalizeChangelogQuery {

  def apply(root: ToChangelog): ToChangelog = {
    val called = joinSubqueries(withOrder(root)).mapChildren { child =>
      PullOutPythonFunctions(CallRowFunctions(child))
    }
    val joined = SparkRules.pruneColumns(called)
    val separated = ReadSourcesOnce
      .withoutMarks(joined)
      .mapChildren(child => SeparateSources(CompareSourcesByNumber(child)))
    val named = NameColumns(separated.mapChildren(WidenEqualParts(_)))
    HideSources.during(named)(recognized).asInstanceOf[ToChangelog]
  }

  private def withOrder(root: ToChangelog): ToChangelog = root.child match {
    case Sort(order @ SortOrder(time, Ascending, _, _) +: _, true, child, _)
        if root.mode == OutputMode.Append && EventTime.columnOf(time).isDefined =>
      root.copy(child = child, order = order)
    case _ => root
  }

  /** Predicates become joins by Spark's rule, followed by Spark's cleanup of the joins. */
  private def joinSubqueries(query: LogicalPlan): LogicalPlan = {
    // Spark's optimizer has already turned some subqueries into joins.
    val root = KeepCalls.show(query)
    if (!root.containsPattern(PLAN_EXPRESSION)) root
    else {
      val placed = LiftSubqueryFilters(LimitBelowSubqueries(root))
      SparkRules.cleanUpJoins(JoinScalarSubqueries(SparkRules.joinPredicateSubqueries(placed)))
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
 * Hides static plans from the rules for changelogs: limits stay limits there, and sorts matter.
 *
 * {{{
 *   Join                        Join                      Join
 *   :- orders                   :- orders                 :- orders
 *   +- GlobalLimit 3     =>     +- HiddenRows     =>      +- GlobalLimit 3
 *      +- Sort [rate]                                        +- Sort [rate]
 * }}}
 */
private[optimizer] object HideStaticRows {

  /** Applies `rules` to `plan`, except for its static parts. */
  def during(plan: LogicalPlan)(rules: LogicalPlan => LogicalPlan): LogicalPlan =
    rules(hide(plan)).transformUp { case HiddenRows(hidden) => hidden }

  private def hide(plan: LogicalPlan): LogicalPlan = plan match {
    case source: FromChangelog if source.streaming => source
    case _ if StaticInference.isStatic(plan) => HiddenRows(plan)
    case _ => plan.mapChildren(hide)
  }
}

/** Placeholder for static rows. */
private[optimizer] case class HiddenRows(hidden: LogicalPlan) extends LeafNode {
  override def output: Seq[Attribute] = hidden.output
  override def maxRows: Option[Long] = hidden.maxRows
}

/**
 * Hides the plans below `from_changelog` from rules. Spark runs them on a stream, and a limit
 * there limits the stream instead of the table.
 *
 * {{{
 *   FromChangelog                FromChangelog               FromChangelog
 *   +- GlobalLimit 3     =>      +- HiddenRows       =>      +- GlobalLimit 3
 *      +- words                                                 +- words
 * }}}
 */
private[optimizer] object HideSources {

  /** Applies `rules` to `plan`, except for the plans below its sources. */
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
 * Compares plans by the numbers of their sources, assigned by `ReadSourcesOnce`. Earlier rules
 * compare plans with plans of other queries, where the numbers differ.
 */
object CompareSourcesByNumber extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case source: FromChangelog => source.copy(isKnownByNumber = true)
  }
}

/**
 * Inserts static rows beside a changelog once, in the first batch.
 *
 * {{{
 *   Union                               Union
 *   :- Aggregate [word]        =>       :- Aggregate [word]
 *   +- LocalRelation                    +- ChangelogStatic
 *                                          +- LocalRelation
 * }}}
 *
 * The static side of a lookup-only join stays unchanged. A static side that emits rows by itself
 * is stored in state, like a changelog.
 */
object InsertStaticRows extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    // The plan below a source belongs to Spark.
    case source: FromChangelog => source
    case join: Join if StaticSide.looksUp(join) =>
      join.mapChildren(side => if (StaticInference.isStatic(side)) side else apply(side))
    case _ =>
      plan.mapChildren { input =>
        if (StaticInference.isStatic(input)) ChangelogStatic(input) else apply(input)
      }
  }
}
