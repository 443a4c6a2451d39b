// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.catalyst.plans.logical.Aggregate
import org.apache.spark.sql.execution.aggregate._
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.{ExpandExec, SparkPlan}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.analysis.DescribeNode
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.plans.{AggregateCalls, ChangelogAggregate}

/**
 * Plans a group aggregate: Spark's hash aggregates combine a batch's changes, one stateful
 * operator merges them into the groups.
 *
 * {{{
 *   ChangelogAggregateExec          one row per group and batch: state + buffers -> changes
 *   +- HashAggregate (merge)
 *      +- Exchange by group         inserted by Spark
 *         +- HashAggregate (partial)
 *            +- Expand              only for min and max over retracting input
 *               +- changes
 * }}}
 *
 * Where `min` or `max` must take values back, the batch's changes are combined per group *and*
 * value, next to the group's own row: `Expand` makes one copy of each change per counted value
 * (`table` 1, 2, ...) beside the change itself (`table` 0). Sorted by group and table, a group's
 * own row comes first.
 *
 * With `spark.sql.changelog.twoPhase.enabled` off, the partial aggregate runs after the exchange
 * and there is nothing to merge.
 */
object PlanChangelogAggregate {

  def apply(
      node: ChangelogAggregate,
      stateInfo: StatefulOperatorStateInfo,
      child: SparkPlan): SparkPlan = {
    val AggregateCalls(grouping, functions, results) = node.calls
    val keys = grouping.map { key =>
      NormalizeFloatingNumbers.normalize(key) match {
        case named: NamedExpression => named
        case other => Alias(other, key.name)(exprId = key.exprId)
      }
    }
    val layout = this.layout(keys, functions, node.inputKind)
    val combined = combine(keys, layout, stateInfo.numPartitions, child)
    ChangelogAggregateExec(
      layout,
      results,
      node.updateKind,
      node.outputKind,
      Some(stateInfo),
      combined)
  }

  private def layout(
      keys: Seq[NamedExpression],
      functions: Seq[AggregateExpression],
      inputKind: Option[Attribute]): AggregateLayout = inputKind match {
    case None => AggregateLayout(keys.map(_.toAttribute), functions, None, Nil, Nil)
    case Some(kind) =>
      val sign = RowKind.signOf(kind)
      val (ordered, linear) = functions.partition { function =>
        function.aggregateFunction.isInstanceOf[Min] || function.aggregateFunction
          .isInstanceOf[Max]
      }
      val arguments = ordered.map(argument)
      val values = arguments.foldLeft(Seq.empty[Expression]) { (found, next) =>
        if (found.exists(_.semanticEquals(next))) found else found :+ next
      }
      val extrema = ordered.zip(arguments).map { case (function, argument) =>
        Extremum(
          values.indexWhere(_.semanticEquals(argument)),
          function.aggregateFunction.isInstanceOf[Max],
          function.resultAttribute)
      }
      val rowCount = SignedCount(Seq(Literal(1)), sign)
      // below the copies made for values, every column a function reads may be NULL
      val readable = if (values.isEmpty) linear else linear.map(allowNulls)
      val buffered = readable.map { function =>
        function.copy(aggregateFunction = SignedFunction(function.aggregateFunction, sign))
      } :+ AggregateExpression(rowCount, Partial, isDistinct = false)
      AggregateLayout(
        keys.map(_.toAttribute),
        buffered,
        rowCount.aggBufferAttributes.headOption,
        values.map(value => Alias(value, DescribeNode.expression(value))()),
        extrema)
  }

  private def allowNulls(function: AggregateExpression): AggregateExpression = function
    .transform { case column: AttributeReference => column.withNullability(true) }
    .asInstanceOf[AggregateExpression]

  private def argument(function: AggregateExpression): Expression = {
    val value = NormalizeFloatingNumbers.normalize(function.aggregateFunction.children.head)
    function.filter match {
      case Some(condition) => If(condition, value, Literal(null, value.dataType))
      case None => value
    }
  }

  /** One row per group, and with extrema one per group and changed value, clustered by group. */
  private def combine(
      keys: Seq[NamedExpression],
      layout: AggregateLayout,
      numPartitions: Int,
      child: SparkPlan): SparkPlan = {
    val (grouping, functions, input) =
      if (layout.hasExtrema) expand(keys, layout, child) else (keys, layout.buffered, child)
    val twoPhase = child.conf.getConf(ChangelogConf.TWO_PHASE_ENABLED)
    val clustering = Some(layout.grouping)
    val partial = aggregate(
      grouping,
      functions.map(_.copy(mode = Partial)),
      if (twoPhase) None else clustering,
      numPartitions,
      input)
    if (!twoPhase) partial
    else {
      aggregate(
        grouping.map(_.toAttribute),
        functions.map(_.copy(mode = PartialMerge, filter = None)),
        clustering,
        numPartitions,
        partial)
    }
  }

  /**
   * Copies each change once per counted value. Only the change itself carries what the buffered
   * functions read; in a copy it is NULL, and only the number of rows is of interest.
   */
  private def expand(
      keys: Seq[NamedExpression],
      layout: AggregateLayout,
      child: SparkPlan): (Seq[NamedExpression], Seq[AggregateExpression], SparkPlan) = {
    val read = AttributeSet(layout.buffered)
    val kinds = RowKind.find(child.output).toSeq
    val passed = child.output.filter(a => read.contains(a) && !kinds.exists(_.exprId == a.exprId))
    val keyValues = keys.map {
      case Alias(expression, _) => expression
      case other => other
    }
    def row(table: Int): Seq[Expression] = {
      val values = layout.values.zipWithIndex.map { case (value, index) =>
        if (index + 1 == table) value.asInstanceOf[Alias].child
        else Literal(null, value.dataType)
      }
      val rest = passed.map(a => if (table == 0) a else Literal(null, a.dataType))
      (keyValues :+ Literal(table)) ++ values ++ kinds ++ rest
    }
    val nullable = AttributeMap(passed.map(a => a -> a.withNullability(true)))
    val valueColumns = layout.values.map(_.toAttribute.withNullability(true))
    val output =
      (layout.grouping :+ layout.table) ++ valueColumns ++ kinds ++ passed.map(nullable)
    (
      (layout.grouping :+ layout.table) ++ valueColumns,
      layout.buffered,
      ExpandExec((0 to layout.values.size).map(row), output, child))
  }

  private def aggregate(
      grouping: Seq[NamedExpression],
      functions: Seq[AggregateExpression],
      clustering: Option[Seq[Attribute]],
      numPartitions: Int,
      child: SparkPlan): SparkPlan = {
    val buffers = functions.flatMap(_.aggregateFunction.aggBufferAttributes)
    val results =
      grouping.map(_.toAttribute) ++ functions.flatMap(
        _.aggregateFunction.inputAggBufferAttributes)
    val attributes = functions.map(_.resultAttribute)
    val offset = if (functions.exists(_.mode == PartialMerge)) grouping.size else 0
    val operator =
      if (Aggregate.supportsHashAggregate(buffers, grouping)) HashAggregateExec.apply _
      else SortAggregateExec.apply _
    operator(
      clustering,
      true, // takes the number of partitions from us, as state needs it
      Some(numPartitions),
      grouping,
      functions,
      attributes,
      offset,
      results,
      child)
  }
}
