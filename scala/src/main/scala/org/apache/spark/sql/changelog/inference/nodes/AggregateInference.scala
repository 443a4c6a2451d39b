// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.inference.{AggregateForm, DescribeNode}
import org.apache.spark.sql.changelog.plans.StateTable
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Groups: a group appears, its value moves, and it goes when its last row does.
 *
 * A group's old value is known from state, so the aggregate can send either form of update, and it
 * must be told what leaves a group, so it asks for both images of what updates. Without functions
 * (`DISTINCT`) a group's row never moves, and over insert-only input it never goes. A group without
 * grouping columns is one row. A session goes when a later row merges it with another.
 *
 * To a reader that only takes new rows an aggregate by event time gives each group once, when the
 * watermark has closed it.
 */
object AggregateInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[Aggregate]

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = {
    val agg = plan.asInstanceOf[Aggregate]
    val input = inputs.head.kinds
    if (emitsClosedGroups(agg, mode)) ModifyKindSet.InsertOnly
    else if (input.changesRows || AggregateForm.groupsSessions(agg)) ModifyKindSet.All
    else if (AggregateForm.calls(agg).isEmpty && agg.groupingExpressions.nonEmpty)
      ModifyKindSet.InsertOnly
    else ModifyKindSet.InsertUpdate
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val agg = node.plan.asInstanceOf[Aggregate]
    val retracts = node.child.kinds.changesRows
    AggregateState(agg, AggregateForm.calls(agg), eventTime(agg), retracts)
      .decision(Seq(Demand.takesBack(agg)), AggregateForm.waits(agg, node.kinds, retracts))
  }

  /** Whether groups come once, when the watermark has passed them. */
  private def emitsClosedGroups(agg: Aggregate, mode: OutputMode): Boolean =
    mode == OutputMode.Append && eventTime(agg).isDefined

  private def eventTime(agg: Aggregate): Option[String] =
    agg.groupingExpressions.flatMap(EventTime.columnOf).headOption
}

/**
 * Chooses what an aggregate keeps of each group: as little as its functions allow.
 *
 * {{{
 *   input only inserts          group             -> Spark's own buffers
 *   sums and counts             group             -> buffers that count backwards too
 *   min, max                    group, value      -> count, and the best few with the group
 *   DISTINCT                    group, value      -> count
 *   anything else               group, row        -> count, and Spark's own function on top
 * }}}
 *
 * @param eventTime
 *   the event time column the input is grouped by, whose watermark ends groups
 * @param retracts
 *   whether rows leave groups
 */
private[inference] final case class AggregateState(
    agg: Aggregate,
    calls: Seq[AggregateExpression],
    eventTime: Option[String],
    retracts: Boolean) {

  private val group = DescribeNode.groups(agg)
  private val bound =
    eventTime.map(column => s"watermark on $column").getOrElse(StateTable.unbounded)
  private val distinct = argumentsOf(calls.filter(AggregateForm.keepsDistinct(_, retracts)))
  private val splits = SQLConf.get.getConf(ChangelogConf.DISTINCT_SPLIT_ENABLED)
  private val extrema =
    argumentsOf(calls.filter(AggregateForm(_, retracts) == AggregateForm.Extremum))
  private val keepsSessions = AggregateForm.keepsSessions(agg, retracts)
  private val needsRows = !keepsSessions && AggregateForm.needsRows(agg, calls, retracts)

  /** The demand on the input, the state and its description. */
  def decision(inputs: Seq[Demand], waits: Boolean): Decision = Decision(
    inputs,
    Some(if (waits) s"$strategy, emitted when the watermark closes the group" else strategy),
    tables)

  private def strategy: String =
    if (needsRows) AggregateState.ComputedAgain
    else if (calls.isEmpty) "groups only"
    else {
      val kept = Seq(
        Some(if (retracts) "signed buffers" else "plain buffers"),
        if (extrema.isEmpty) None else Some("counted values"),
        if (distinct.isEmpty) None
        else Some(if (splits) AggregateState.SplitDistinct else "distinct values")).flatten
      kept.mkString(" and ")
    }

  private def tables: Seq[StateTable] = {
    val buffers =
      if (calls.nonEmpty) "buffers" + extrema.map(v => s" and best values of $v").mkString
      else if (retracts) "row count"
      else "nothing"
    if (needsRows) {
      val kept = agg.groupingExpressions.zip(group).collect {
        case (expression, name) if !AggregateForm.isSession(expression) => name
      }
      Seq(StateTable("rows", kept :+ "row", "count", bound))
    } else if (keepsSessions) Seq(StateTable("sessions", group, buffers, bound))
    else {
      StateTable("groups", group, buffers, bound) +:
        (extrema.map(values("values", _)) ++ distinct.map(values("distinct values", _)))
    }
  }

  private def values(name: String, of: String): StateTable =
    StateTable(s"$name of $of", group :+ of, "count", bound)

  private def argumentsOf(of: Seq[AggregateExpression]): Seq[String] =
    of.map(_.aggregateFunction.children.map(DescribeNode.expression).mkString(", ")).distinct
}

private[inference] object AggregateState {
  val ComputedAgain = "rows of the group, computed again"
  val SplitDistinct = "split distinct values"
}
