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
 * Plans a group aggregate: Spark's hash aggregates combine a batch's changes, one stateful
 * operator merges them into the groups.
 *
 * {{{
 *   ChangelogAggregateExec          one row per group and batch: state + buffers -> changes
 *   +- HashAggregate (merge)        none where values are told apart: the operator merges
 *      +- Exchange by group         inserted by Spark
 *         +- HashAggregate (partial)
 *            +- Expand              only where values are told apart
 *               +- changes
 * }}}
 *
 * Values are told apart where `min` or `max` must take them back, and for DISTINCT. The batch's
 * changes are then combined per group *and* value, next to the group's own row: `Expand` makes one
 * copy of each change per kind of value (`table` 1, 2, ...) beside the change itself (`table` 0).
 *
 * DISTINCT functions are ordinary ones over the values that appear and disappear:
 *
 * {{{
 *   ChangelogAggregateExec
 *   +- HashAggregate (merge)          split only
 *      +- Exchange by group           split only
 *         +- HashAggregate            DISTINCT functions over values, merge of all others
 *            +- ChangelogDistinctExec     group, value -> count
 *               +- HashAggregate (merge)
 *                  +- Exchange        by group; split: by group and value
 *                     +- ...
 * }}}
 *
 * Split (`spark.sql.changelog.aggregate.distinctSplit.enabled`), the values of a hot group are
 * spread over all partitions, and only their number and totals meet in the group's. The two
 * operators share nothing: values are kept by one, buffers by the other.
 *
 * Where values hardly repeat (see [[ValueCombining]]) changes go through the exchange as they are:
 * a row of the group with all its values and with buffers over that one change. Of a large batch of
 * which nothing is known yet, each task decides for itself ([[CombineByTaskExec]]). Not for DISTINCT
 * over retracting input, where a value's changes must be netted before they are counted.
 *
 * Functions over rows that only come whose results depend on the order of rows, such as `first`, see
 * those of a batch sorted, after the exchange.
 *
 * With `spark.sql.changelog.twoPhase.enabled` off, the partial aggregate runs after the exchange
 * and there is nothing to merge.
 */
private[aggregate] final class PlanChangelogAggregate(
    node: ChangelogAggregate,
    stateInfo: Long => StatefulOperatorStateInfo,
    changes: SparkPlan) {
  private val ownState = stateInfo(node.operatorId)
  private val numPartitions = ownState.numPartitions
  private val conf = changes.conf
  private val twoPhase = conf.getConf(ChangelogConf.TWO_PHASE_ENABLED)
  private val splits = conf.getConf(ChangelogConf.DISTINCT_SPLIT_ENABLED)

  // an exchange can be by columns only
  private val (grouping, child) = {
    // named the same in every batch, as columns of the state are
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

  /** Whose value a row holds; rows of distinct values become rows of their group later. */
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

  /** Whether an aggregate merges what tasks have combined; with extrema the operator merges it. */
  private val meets = !layout.hasExtrema

  private def changesOfGroups: SparkPlan =
    if (node.inputKind.isEmpty && calls.isOrderSensitive) combineInOrder
    else if (values.isEmpty || calls.buffersOfRow.isEmpty || !twoPhase) {
      combine(layout.grouping, meets)
    } else {
      ValueCombining.pays(ownState, conf) match {
        case Some(true) => combine(layout.grouping, meets)
        case None if ValueCombining.isLarge(inputSize, conf) => combineByTask
        case _ => ProjectExec(singleChange, sampled(ownState))
      }
    }

  private def inputSize: BigInt = node.child.stats.sizeInBytes

  /** The row of a change that is not combined, with all its values. */
  private def singleChange: Seq[NamedExpression] = {
    val table = Alias(Literal(0), layout.table.name)(exprId = layout.table.exprId)
    (keys :+ table) ++ calls.values ++ calls.buffersOfRow.get
  }

  /** Rows of combined values from some tasks, and of single changes from others. */
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
        meets = false))
  }

  /**
   * Lets functions such as `first` see a batch's rows in one order, whoever has read them and
   * however often: another attempt at the batch must give what the first one gave.
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
      ValueCombining.pays(state, conf).getOrElse(ValueCombining.isLarge(inputSize, conf))

  /** Changes that aren't combined; in some batches it is looked at whether that would pay. */
  private def sampled(state: StatefulOperatorStateInfo): SparkPlan =
    if (!ValueCombining.samples(state, conf)) child else ValueSampleExec(valueKeys, child)

  /** The group and the value of a change, for each kind of values. */
  private def valueKeys: Seq[Seq[Expression]] =
    calls.values.map(value => keys.map(valueOf) :+ valueOf(value))

  private def valueOf(column: NamedExpression): Expression = column match {
    case Alias(computed, _) => computed
    case other => other
  }

  /** One row per group, and one per group and changed value where values are told apart. */
  private def combine(clustering: Seq[Attribute], meets: Boolean): SparkPlan = {
    val (grouping, input) = if (values.isEmpty) (keys, child) else (expandedKeys, expand(child))
    aggregate(grouping, calls.combined.map(_.copy(mode = Partial)), clustering, input, meets)
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
      if (combines) combine(clustering, meets = calls.rowCount.isDefined)
      else singleChanges(sampled(state)))
    val grouping =
      if (layout.hasExtrema) (layout.grouping :+ layout.table) ++ values.take(numExtrema)
      else layout.grouping
    val functions = calls.combined.map(merging) ++ calls.distinct.map(_.copy(mode = Partial))
    if (splits) aggregate(grouping, functions, layout.grouping, distinct, meets)
    else SparkAggregates(grouping, functions, Some(layout.grouping), distinct)
  }

  /** A row per change; where values are spread one per value, the first of which is the group's. */
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
   * Copies each change once per kind of value. Only the change itself carries what the combined
   * functions read; in a copy it is NULL, and only the number of rows is of interest.
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

  /** Combines rows by `grouping` where they are, if that is wanted, and maybe where they meet. */
  private def aggregate(
      grouping: Seq[NamedExpression],
      functions: Seq[AggregateExpression],
      clustering: Seq[Attribute],
      input: SparkPlan,
      meets: Boolean): SparkPlan =
    if (!twoPhase) SparkAggregates(grouping, functions, Some(clustering), input)
    else if (!meets) SparkAggregates(grouping, functions, None, input)
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

object PlanChangelogAggregate {

  /**
   * The operators for `node`.
   *
   * @param stateInfo
   *   gives the state of an operator by its id
   */
  def apply(
      node: ChangelogAggregate,
      stateInfo: Long => StatefulOperatorStateInfo,
      child: SparkPlan): SparkPlan = new PlanChangelogAggregate(node, stateInfo, child).plan
}
