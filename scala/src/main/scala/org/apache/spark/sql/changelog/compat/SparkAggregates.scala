// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.Aggregate
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate._
import org.apache.spark.sql.execution.metric.SQLMetric

/** Creates Spark's aggregate operators, and modifies aggregates planned by Spark. */
object SparkAggregates {

  /** Returns the operator that Spark would choose for these functions. Its results are the functions' buffers. */
  def apply(
      grouping: Seq[NamedExpression],
      functions: Seq[AggregateExpression],
      clustering: Option[Seq[Attribute]],
      input: SparkPlan): SparkPlan = {
    val buffers = functions.flatMap(_.aggregateFunction.aggBufferAttributes)
    val offset = functions
      .find(_.mode == PartialMerge)
      .flatMap(_.aggregateFunction.inputAggBufferAttributes.headOption)
      .map(first => input.output.indexWhere(_.exprId == first.exprId))
      .getOrElse(0)
    val operator =
      if (Aggregate.supportsHashAggregate(buffers, grouping)) HashAggregateExec.apply _
      else if (Aggregate.supportsObjectHashAggregate(functions, grouping)) {
        ObjectHashAggregateExec.apply _
      } else SortAggregateExec.apply _
    operator(
      clustering,
      false, // Spark would give a streaming aggregate its own number of partitions
      None,
      grouping,
      functions,
      functions.map(_.resultAttribute),
      offset,
      results(grouping, functions),
      input)
  }

  /** Returns an aggregate over rows sorted by group, in the order in which functions read the rows. */
  def inOrder(
      grouping: Seq[Attribute],
      functions: Seq[AggregateExpression],
      numPartitions: Int,
      sorted: SparkPlan): SparkPlan =
    SortAggregateExec(
      Some(grouping),
      true,
      Some(numPartitions),
      grouping,
      functions,
      functions.map(_.resultAttribute),
      0,
      results(grouping, functions),
      sorted)

  private def results(
      grouping: Seq[NamedExpression],
      functions: Seq[AggregateExpression]): Seq[Attribute] =
    grouping.map(_.toAttribute) ++ functions.flatMap(_.aggregateFunction.inputAggBufferAttributes)

  /** Replaces the aggregates of a Spark plan by sort aggregates, with the grouping columns changed by `groupBy`. */
  def sorted(plan: SparkPlan, groupBy: NamedExpression => NamedExpression): SparkPlan = {
    def grouped(aggregate: SortAggregateExec) =
      aggregate.copy(groupingExpressions = aggregate.groupingExpressions.map(groupBy))
    plan.transform {
      case hash: HashAggregateExec => grouped(hash.toSortAggregate)
      case hash: ObjectHashAggregateExec => grouped(hash.toSortAggregate)
      case sort: SortAggregateExec => grouped(sort)
    }
  }

  /** Returns a Spark aggregate over other rows, which lack the column `without`. */
  def over(plan: SparkPlan, rows: SparkPlan, without: Attribute): SparkPlan = {
    def left(columns: Seq[NamedExpression]) = columns.filterNot(_.exprId == without.exprId)
    plan match {
      case hash: HashAggregateExec =>
        hash.copy(
          groupingExpressions = left(hash.groupingExpressions),
          resultExpressions = left(hash.resultExpressions),
          child = rows)
      case hash: ObjectHashAggregateExec =>
        hash.copy(
          groupingExpressions = left(hash.groupingExpressions),
          resultExpressions = left(hash.resultExpressions),
          child = rows)
      case sort: SortAggregateExec =>
        sort.copy(
          groupingExpressions = left(sort.groupingExpressions),
          resultExpressions = left(sort.resultExpressions),
          child = rows)
      case other => throw SparkException.internalError(s"Rows are aggregated by $other")
    }
  }

  /** Returns the merge of sessions in a Spark plan, if any. */
  def sessionsOf(plan: SparkPlan): Option[MergedSessions] =
    plan.collectFirst { case merging: MergingSessionsExec =>
      MergedSessions(
        merging.groupingExpressions.map(_.toAttribute),
        merging.sessionExpression.toAttribute,
        merging.aggregateExpressions,
        merging.child)
    }

  /** Replaces the merge of sessions in a plan. */
  def withSessions(plan: SparkPlan, sessions: SparkPlan): SparkPlan =
    plan.transform { case _: MergingSessionsExec => sessions }

  /**
   * Merges the sessions of rows, and the functions' buffers.
   *
   * @param rows
   *   rows of the columns `input`, sorted by group and session
   */
  def mergeSessions(
      partition: Int,
      grouping: Seq[NamedExpression],
      session: NamedExpression,
      input: Seq[Attribute],
      rows: Iterator[InternalRow],
      functions: Seq[AggregateExpression],
      numMerged: SQLMetric): Iterator[InternalRow] =
    new MergingSessionsIterator(
      partition,
      grouping,
      session,
      input,
      rows,
      functions,
      functions.map(_.resultAttribute),
      grouping.size,
      input,
      (expressions, schema) => MutableProjection.create(expressions, schema),
      numMerged)
}

/** Spark's merge of sessions: the grouping columns, including the session, the functions and the input. */
final case class MergedSessions(
    grouping: Seq[Attribute],
    session: Attribute,
    functions: Seq[AggregateExpression],
    input: SparkPlan)
