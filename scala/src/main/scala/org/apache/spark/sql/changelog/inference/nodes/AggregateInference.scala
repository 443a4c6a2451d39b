// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.Aggregate
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.ModifyKindSet
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.inference.{AggregateForm, DescribeNode}
import org.apache.spark.sql.changelog.plans.StateTable

/**
 * Infers the changes of an aggregate: a group appears with the first row, changes, and disappears
 * with the last row.
 *
 * State has the old result, so the aggregate can emit updates with or without before images. The
 * aggregate asks for both images of input updates, to know the rows removed from a group. Without
 * functions (`DISTINCT`), a group's row never updates. Over insert-only input, the row never
 * disappears. An aggregate without grouping columns is one row. A session disappears when a later
 * row merges two sessions.
 *
 * In append mode, an aggregate by event time emits each group once, after the watermark closes
 * the group.
 */
object AggregateInference extends NodeInference[Aggregate] {
  override def kinds(agg: Aggregate, inputs: NodeInputs): ModifyKindSet = {
    val input = inputs.head.kinds
    if (inputs.appends && eventTime(agg).isDefined) ModifyKindSet.InsertOnly
    else if (input.changesRows || AggregateForm.groupsSessions(agg)) ModifyKindSet.All
    else if (AggregateForm.calls(agg).isEmpty && agg.groupingExpressions.nonEmpty)
      ModifyKindSet.InsertOnly
    else ModifyKindSet.InsertUpdate
  }

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val agg = node.plan.asInstanceOf[Aggregate]
    val retracts = node.child.kinds.changesRows
    AggregateState(agg, AggregateForm.calls(agg), eventTime(agg), retracts)
      .decision(Seq(Demand.bothImagesFor(agg)), AggregateForm.waits(agg, node.kinds, retracts))
  }

  private def eventTime(agg: Aggregate): Option[String] =
    agg.groupingExpressions.flatMap(EventTime.columnOf).headOption
}

/**
 * Chooses the state of each group: as little as the functions permit.
 *
 * {{{
 *   insert-only input           group             -> Spark's own buffers
 *   sums and counts             group             -> buffers that also subtract
 *   min, max                    group, value      -> count, and the best few with the group
 *   DISTINCT                    group, value      -> count
 *   other functions             group, row        -> count, and Spark's own function on top
 * }}}
 *
 * @param eventTime
 *   the event-time column among the groups, whose watermark closes groups
 * @param retracts
 *   whether rows leave groups
 */
private[inference] final case class AggregateState(
    agg: Aggregate,
    calls: Seq[AggregateExpression],
    eventTime: Option[String],
    retracts: Boolean) {

  private val group = DescribeNode.groups(agg)
  private val bound = StateTable.boundedByWatermark(eventTime)
  private val distinct = argumentsOf(calls.filter(AggregateForm.keepsDistinct(_, retracts)))
  private val splits = SQLConf.get.getConf(ChangelogConf.DISTINCT_SPLIT_ENABLED)
  private val extrema =
    argumentsOf(calls.filter(AggregateForm(_, retracts) == AggregateForm.Extremum))
  private val keepsSessions = AggregateForm.keepsSessions(agg, retracts)
  private val needsRows = !keepsSessions && AggregateForm.needsRows(agg, calls, retracts)

  /** Returns the demand on the input, the state and its description. */
  def decision(inputs: Seq[Demand], waits: Boolean): Decision = Decision(
    inputs,
    Some(if (waits) s"$strategy, emitted when the watermark closes the group" else strategy),
    tables)

  private def strategy: String =
    if (needsRows) AggregateState.Recomputed
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
  val Recomputed = "recompute touched groups"
  val SplitDistinct = "split distinct values"
}
