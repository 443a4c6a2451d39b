// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.{ExpandExec, ProjectExec, SparkPlan}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.{SparkAggregates, SparkRules}
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.execution.RowOrder
import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
import org.apache.spark.sql.changelog.plans.ChangelogAggregate

/**
 * Plans a group aggregate: Spark's hash aggregates combine a batch's changes, and a stateful operator merges
 * them into the groups.
 *
 * {{{
 *   ChangelogAggregateExec          one row per group and batch: state + buffers -> changes
 *   +- HashAggregate (merge)        absent over retractable min and max: the operator merges
 *      +- Exchange by group         inserted by Spark
 *         +- HashAggregate (partial)
 *            +- Expand              only with separate values
 *               +- changes
 * }}}
 *
 * Values are separate for retractable `min` and `max`, and for DISTINCT. The batch's changes are then combined
 * per group *and* value, next to the group's own row. `Expand` copies each change once per kind of value
 * (`table` 1, 2, ...) in addition to the change itself (`table` 0).
 *
 * DISTINCT functions are ordinary functions over the values that appear and disappear:
 *
 * {{{
 *   ChangelogAggregateExec
 *   +- HashAggregate (merge)          split only
 *      +- Exchange by group           split only
 *         +- HashAggregate            DISTINCT functions over values, merge of the others
 *            +- ChangelogDistinctExec     group, value -> count
 *               +- HashAggregate (merge)
 *                  +- Exchange        by group; split: by group and value
 *                     +- ...
 * }}}
 *
 * Split (`spark.sql.changelog.aggregate.distinctSplit.enabled`), the values of a hot group are spread over all
 * partitions. Only their number and totals meet in the group's partition. The two operators share no state: one
 * stores values, the other buffers.
 *
 * If values hardly repeat (see [[ValueCombining]]), changes pass the exchange uncombined. Each is a row of the
 * group, with all its values and with buffers over that single change. In a large batch without a known
 * benefit, each task decides for itself ([[CombineByTaskExec]]). This does not apply to DISTINCT over
 * retracting input, which nets a value's changes before counting.
 *
 * Order-sensitive functions over insert-only input, such as `first`, read a batch's rows sorted, after the
 * exchange.
 *
 * With `spark.sql.changelog.twoPhase.enabled` off, the partial aggregate runs after the exchange and no merge
 * is needed.
 *
 * @param stateInfo
 *   returns the state of an operator by its id
 */
private[execution] final class PlanChangelogAggregate(
    node: ChangelogAggregate,
    stateInfo: Long => StatefulOperatorStateInfo,
    changes: SparkPlan) {
  private val ownState = stateInfo(node.operatorId)
  private val numPartitions = ownState.numPartitions
  private val conf = changes.conf
  private val twoPhase = conf.getConf(ChangelogConf.TWO_PHASE_ENABLED)
  private val splits = conf.getConf(ChangelogConf.DISTINCT_SPLIT_ENABLED)

  // an exchange can only be by columns
  private val (grouping, child) = {
    // the same name in every batch, because state columns have these names
    val named = node.calls.grouping.map {
      case key @ Alias(computed, _) =>
        Alias(computed, DescribeNode.expression(computed))(key.exprId)
      case key => key
    }
    val computed = named.filterNot(changes.outputSet.contains)
    val input =
      if (computed.isEmpty) changes else ProjectExec(changes.output ++ computed, changes)
    (named.map(_.toAttribute), input)
  }
  private val keys: Seq[NamedExpression] = grouping.map { key =>
    SparkRules.normalizeFloats(key) match {
      case named: NamedExpression => named
      case other => Alias(other, key.name)(exprId = key.exprId)
    }
  }
  private val calls = CallsByForm(node.calls.functions, node.inputKind)
  private val layout = AggregateLayout(
    keys.map(_.toAttribute),
    calls.combined ++ calls.distinct,
    calls.rowCount,
    calls.extremumValues,
    calls.extrema)

  /** The number of the table of a row's value. Rows of distinct values later become rows of their group. */
  private val table: Attribute =
    if (calls.distinct.isEmpty) layout.table else layout.table.newInstance()
  private val values = calls.values.map(_.toAttribute.withNullability(true))
  private val numExtrema = calls.extremumValues.size

  def plan: SparkPlan = ChangelogAggregateExec(
    layout,
    node.calls.results,
    node.updateKind,
    node.emitsClosed,
    node.outputKind,
    Some(AssignStateInfo.placed(ownState, layout.grouping)),
    if (calls.distinct.isEmpty) changesOfGroups else combineDistinct)

  /** Whether an aggregate after the exchange merges the tasks' rows. With extrema the operator merges them. */
  private val merges = !layout.hasExtrema

  private def changesOfGroups: SparkPlan =
    if (node.inputKind.isEmpty && calls.isOrderSensitive) combineInOrder
    else if (values.isEmpty || calls.buffersOfRow.isEmpty || !twoPhase) {
      combine(layout.grouping, merges)
    } else {
      ValueCombining.isWorthwhile(ownState, conf) match {
        case Some(true) => combine(layout.grouping, merges)
        case None if ValueCombining.isLarge(inputSize, conf) => combineByTask
        case _ => ProjectExec(singleChange, sampled(ownState))
      }
    }

  private def inputSize: BigInt = node.child.stats.sizeInBytes

  /** The row of an uncombined change, with all its values. */
  private def singleChange: Seq[NamedExpression] = {
    val table = Alias(Literal(0), layout.table.name)(exprId = layout.table.exprId)
    (keys :+ table) ++ calls.values ++ calls.buffersOfRow.get
  }

  /** Plans rows of combined values from some tasks, and of uncombined changes from others. */
  private def combineByTask: SparkPlan = {
    val id = ownState.operatorId
    val changes = ChangesByTaskExec(id, valueKeys, singleChange, child)
    CombineByTaskExec(
      id,
      aggregate(
        expandedKeys,
        calls.combined.map(_.copy(mode = Partial)),
        layout.grouping,
        expand(changes),
        merges = false))
  }

  /**
   * Sorts a batch's rows for functions such as `first`. A rerun of the batch must give the same result, in
   * whatever order and partitions Spark reads the rows again.
   */
  private def combineInOrder: SparkPlan = {
    val keyIds = layout.grouping.map(_.exprId)
    val input =
      ProjectExec(keys ++ child.output.filterNot(column => keyIds.contains(column.exprId)), child)
    val read = AttributeSet(calls.combined)
    val order =
      RowOrder(layout.grouping.map(SortOrder(_, Ascending)), input.output.filter(read.contains))
    val sorted = SortedRowsExec(layout.grouping, numPartitions, order, input)
    val functions = calls.combined.map(_.copy(mode = Partial))
    SparkAggregates.inOrder(layout.grouping, functions, numPartitions, sorted)
  }

  private def combinesValues(state: StatefulOperatorStateInfo): Boolean =
    calls.buffersOfRow.isEmpty || !twoPhase ||
      ValueCombining.isWorthwhile(state, conf).getOrElse(ValueCombining.isLarge(inputSize, conf))

  /** Returns the uncombined changes. Some batches sample their values, to estimate the benefit of combining. */
  private def sampled(state: StatefulOperatorStateInfo): SparkPlan =
    if (!ValueCombining.samples(state, conf)) child else ValueSampleExec(valueKeys, child)

  /** The group and the value of a change, for each kind of values. */
  private def valueKeys: Seq[Seq[Expression]] =
    calls.values.map(value => keys.map(valueOf) :+ valueOf(value))

  private def valueOf(column: NamedExpression): Expression = column match {
    case Alias(computed, _) => computed
    case other => other
  }

  /** Plans a row per group, and with separate values also a row per group and changed value. */
  private def combine(clustering: Seq[Attribute], merges: Boolean): SparkPlan = {
    val (grouping, input) = if (values.isEmpty) (keys, child) else (expandedKeys, expand(child))
    aggregate(grouping, calls.combined.map(_.copy(mode = Partial)), clustering, input, merges)
  }

  /** One row per group and changed DISTINCT argument, pre-aggregated. */
  private def combineDistinct: SparkPlan = {
    val clustering = if (splits) expandedKeys else layout.grouping
    val buffers = calls.combined.flatMap(_.aggregateFunction.inputAggBufferAttributes)
    val distinctLayout = DistinctLayout(
      layout.grouping,
      table,
      layout.table,
      values.take(numExtrema),
      values.drop(numExtrema),
      calls.distinctShared,
      calls.rowCount.map(_ => layout.inputRowCount),
      calls.sign,
      buffers.zip(ImperativeBuffers.initialValues(calls.combined)))
    val state = stateInfo(node.distinctOperatorId.get)
    val combines = calls.rowCount.isDefined || combinesValues(state)
    val distinct = ChangelogDistinctExec(
      distinctLayout,
      clustering,
      areCombined = combines,
      Some(AssignStateInfo.placed(state, clustering)),
      if (combines) combine(clustering, merges = calls.rowCount.isDefined)
      else singleChanges(sampled(state)))
    val grouping =
      if (layout.hasExtrema) (layout.grouping :+ layout.table) ++ values.take(numExtrema)
      else layout.grouping
    val functions = calls.combined.map(merging) ++ calls.distinct.map(_.copy(mode = Partial))
    if (splits) aggregate(grouping, functions, layout.grouping, distinct, merges)
    else SparkAggregates(grouping, functions, Some(layout.grouping), distinct)
  }

  /**
   * Plans a row per uncombined change. If values are spread, plans a row per value, and the first also stands
   * for the group.
   */
  private def singleChanges(changes: SparkPlan): SparkPlan = {
    val rows = ProjectExec(keys ++ calls.values ++ calls.buffersOfRow.get, changes)
    val (own, buffers) = rows.output.drop(keys.size).splitAt(values.size)
    val noBuffers = ImperativeBuffers.initialValues(calls.combined)
    def row(number: Int): Seq[Expression] =
      (layout.grouping :+ Literal(number)) ++
        own.zipWithIndex.map { case (value, index) =>
          if (index + 1 == number) value else Literal(null, value.dataType)
        } ++ (if (number == 1) buffers else noBuffers)
    if (!splits) rows
    else {
      ExpandExec(
        (1 to values.size).map(row),
        expandedKeys ++ buffers.map(_.withNullability(true)),
        rows)
    }
  }

  private def expandedKeys: Seq[Attribute] = (layout.grouping :+ table) ++ values

  /**
   * Copies each change once per kind of value. Only the change itself has the columns that the combined
   * functions read. A copy has NULL in these columns and counts the value's rows.
   */
  private def expand(child: SparkPlan): SparkPlan = {
    val read = AttributeSet(calls.combined)
    val kinds = RowKind.find(child.output).toSeq
    val passed = child.output.filter(a => read.contains(a) && !kinds.exists(_.exprId == a.exprId))
    def row(number: Int): Seq[Expression] = {
      val own = calls.values.zipWithIndex.map { case (value, index) =>
        if (index + 1 == number) value.children.head else Literal(null, value.dataType)
      }
      val rest = passed.map(a => if (number == 0) a else Literal(null, a.dataType))
      (keys.map(valueOf) :+ Literal(number)) ++ own ++ kinds ++ rest
    }
    ExpandExec(
      (0 to values.size).map(row),
      expandedKeys ++ kinds ++ passed.map(_.withNullability(true)),
      child)
  }

  /** Combines rows by `grouping` within each task in two-phase aggregation, and after the exchange if `merges`. */
  private def aggregate(
      grouping: Seq[NamedExpression],
      functions: Seq[AggregateExpression],
      clustering: Seq[Attribute],
      input: SparkPlan,
      merges: Boolean): SparkPlan =
    if (!twoPhase) SparkAggregates(grouping, functions, Some(clustering), input)
    else if (!merges) SparkAggregates(grouping, functions, None, input)
    else {
      SparkAggregates(
        grouping.map(_.toAttribute),
        functions.map(merging),
        Some(clustering),
        SparkAggregates(grouping, functions, None, input))
    }

  private def merging(function: AggregateExpression): AggregateExpression =
    function.copy(mode = PartialMerge, filter = None)
}
