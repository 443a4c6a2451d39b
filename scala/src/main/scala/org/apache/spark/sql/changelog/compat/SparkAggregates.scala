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

/** Makes Spark's operators of aggregates, and changes some that Spark has made. */
object SparkAggregates {

  /** The operator that Spark would take for these functions; its results are their buffers. */
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
      false, // of streaming ones Spark says the number of partitions, for its own operators
      None,
      grouping,
      functions,
      functions.map(_.resultAttribute),
      offset,
      results(grouping, functions),
      input)
  }

  /** The same for rows that come sorted by group, in the order in which functions see them. */
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

  /** A plan of Spark's whose aggregates expect rows sorted by group, and group by `groupBy`. */
  def sorted(plan: SparkPlan, groupBy: NamedExpression => NamedExpression): SparkPlan = {
    def grouped(aggregate: SortAggregateExec) =
      aggregate.copy(groupingExpressions = aggregate.groupingExpressions.map(groupBy))
    plan.transform {
      case hash: HashAggregateExec => grouped(hash.toSortAggregate)
      case hash: ObjectHashAggregateExec => grouped(hash.toSortAggregate)
      case sort: SortAggregateExec => grouped(sort)
    }
  }

  /** An aggregate of Spark's over other rows, which lack the column `without`. */
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

  /** Spark's operator that merges sessions in a plan, if there is one. */
  def sessionsOf(plan: SparkPlan): Option[MergedSessions] =
    plan.collectFirst { case merging: MergingSessionsExec =>
      MergedSessions(
        merging.groupingExpressions.map(_.toAttribute),
        merging.sessionExpression.toAttribute,
        merging.aggregateExpressions,
        merging.child)
    }

  /** The plan with something else in place of what merges its sessions. */
  def withSessions(plan: SparkPlan, sessions: SparkPlan): SparkPlan =
    plan.transform { case _: MergingSessionsExec => sessions }

  /**
   * Merges sessions of rows, and buffers of functions in them.
   *
   * @param rows
   *   of columns `input`, sorted by group and session
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

/** How Spark merges sessions: by which columns, one of them the session, and of what. */
final case class MergedSessions(
    grouping: Seq[Attribute],
    session: Attribute,
    functions: Seq[AggregateExpression],
    input: SparkPlan)
