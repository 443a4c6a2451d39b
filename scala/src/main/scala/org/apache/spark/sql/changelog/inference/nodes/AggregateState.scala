// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.Aggregate
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.inference.{AggregateForm, DescribeNode}
import org.apache.spark.sql.changelog.plans.StateTable

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

  /** What is asked of the input, with the state and how it is described. */
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
