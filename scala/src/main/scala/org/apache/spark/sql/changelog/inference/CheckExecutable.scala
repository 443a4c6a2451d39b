// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.expressions.{Rank => _, _}
import org.apache.spark.sql.catalyst.plans.logical.{EventTime => _, LogicalPlan, _}
import org.apache.spark.sql.types.{IndeterminateStringType, IntegralType, LongType}

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.inference.nodes.{InferredNode, StaticInference}
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.{ModifyKindSet, RowKind}

/**
 * Rejects a query with a node that inference supports and execution does not. A wrong result is
 * thus impossible. EXPLAIN still shows such a query.
 */
object CheckExecutable {
  def apply(root: AnnotatedPlan): Unit = check(root, Nil)

  /** @param place where the node is, from the node up to the root */
  private def check(node: AnnotatedPlan, place: Seq[String]): Unit = {
    obstacle(node).orElse(collationObstacle(node)).foreach { what =>
      val where = if (place.isEmpty) "root of the query" else place.mkString(", ")
      throw analysis(
        "CHANGELOG_NOT_EXECUTABLE_YET",
        "node" -> DescribeNode.short(node.plan),
        "place" -> where,
        "what" -> what)
    }
    if (!isSparkNode(node.plan)) {
      val name = DescribeNode.short(node.plan)
      node.children.zip(inputNames(node)).foreach { case (child, input) =>
        check(child, s"$input of $name" +: place)
      }
    }
  }

  /** Whether Spark itself computes the node and its descendants. */
  private def isSparkNode(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[FromChangelog] || StaticInference.appliesTo(plan)

  /** Returns the reason why the node is not executable, or None. */
  private def obstacle(node: AnnotatedPlan): Option[String] = node.plan match {
    case _: ToChangelog => None
    case plan if isSparkNode(plan) => None
    case _: Project | _: Filter | _: TypedFilter | _: Union => None
    case _: Generate | _: Expand | _: Sort => None
    case watermark: EventTimeWatermark => leavingObstacle(watermark)
    case _: RepartitionOperation | _: RebalancePartitions => None
    case _: Join | _: TemporalJoin | _: LookupJoin => None
    case _: RecursiveQuery | _: Emit | _: KeyedVersions | _: CommitHistory => None
    case metrics: CollectMetrics =>
      if (node.mode.isInsertOnly) None else SignedMetrics.obstacle(metrics)
    case agg: Aggregate => aggregateObstacle(agg, node)
    case filter: TemporalFilter =>
      watermarkObstacle(filter.child, "omit the watermark, because the condition bounds the rows")
    case hint: RowTtl =>
      watermarkObstacle(hint.child, "omit the watermark, because the hint bounds the rows")
    case rank: Rank =>
      unsortable(rank.partitionBy.map(e => e -> DescribeNode.expression(e)))
    case window: Window =>
      unsortable(window.partitionSpec.map(e => e -> DescribeNode.expression(e)))
    // Computes the grouping columns of a Scala function.
    case _: AppendColumns => None
    case GroupedMap(map) => groupsObstacle(map)
    case plan if GroupedMap.resultOf(plan).isDefined => None
    case _ => Some("no operator runs the node")
  }

  /** State and retractions find a row by texts, and the comparison needs a known collation. */
  private def collationObstacle(node: AnnotatedPlan): Option[String] = {
    val inputs = if (node.state.isEmpty) Nil else node.children.flatMap(_.plan.output)
    val outputs =
      if (node.mode.isInsertOnly || isSparkNode(node.plan)) Nil else node.plan.output
    (inputs ++ outputs)
      .find(_.dataType.existsRecursively(_ == IndeterminateStringType))
      .map { column =>
        s"the text column ${column.name} combines several collations, and has no collation to " +
          "compare values with; set one with COLLATE, as in a || b COLLATE UTF8_BINARY"
      }
  }

  private def aggregateObstacle(agg: Aggregate, node: AnnotatedPlan): Option[String] = {
    val retracts = !node.children.head.mode.isInsertOnly
    if (!AggregateForm.needsRows(agg, AggregateForm.calls(agg), retracts)) None
    else unsortable(agg.groupingExpressions.zip(DescribeNode.groups(agg)))
  }

  /**
   * Rows that enter or leave over time may have an event time already closed by the watermark.
   */
  private def watermarkObstacle(child: LogicalPlan, remedy: String): Option[String] =
    child.output.flatMap(EventTime.columnOf(_)).headOption.map { column =>
      s"rows appear or disappear with the time, even after the watermark on $column; $remedy"
    }

  /** A watermark would drop retractions by ROW_TTL as late rows. */
  private def leavingObstacle(watermark: EventTimeWatermark): Option[String] =
    if (!watermark.exists(_.isInstanceOf[RowTtl])) None
    else {
      Some(
        "the hint ROW_TTL below deletes rows, even after the watermark has passed; " +
          "omit the watermark, because the hint bounds the rows")
    }

  private def groupsObstacle(map: GroupedMap): Option[String] = {
    val mixed = map.groups.transpose.find(_.map(_.dataType).distinct.size > 1).map { columns =>
      val types = columns.map(column => s"${column.name}, of type ${column.dataType.sql}")
      s"the groups of the inputs differ: one by ${types.mkString(", the other by ")}"
    }
    mixed.orElse(unsortable(map.groups.head.map(e => e -> DescribeNode.expression(e))))
  }

  /** Returns the reason why an expression is not sortable. Expressions are paired with names. */
  private def unsortable(groups: Seq[(Expression, String)]): Option[String] =
    groups.collectFirst {
      case (group, name) if !RowOrdering.isOrderable(group.dataType) =>
        s"the node groups by $name, and values of type ${group.dataType.sql} have no order"
    }

  private def inputNames(node: AnnotatedPlan): Seq[String] = node.children.size match {
    case 1 => Seq("input")
    case 2 => Seq("left input", "right input")
    case count => (1 to count).map(index => s"input $index")
  }
}

/**
 * Rejects a subquery over a changelog that is still an expression. Spark would run the expression
 * over the changes of a batch instead of the current rows. Supported subqueries are joins at this
 * point. Spark runs subqueries over static tables.
 */
object CheckSubqueries {
  def apply(plan: LogicalPlan): Unit = {
    plan match {
      // Spark joins the subquery with the input of a neighboring correlated subquery, where
      // columns read by the subquery are missing.
      case join: Join if join.missingInput.nonEmpty =>
        throw analysis(
          "CHANGELOG_SUBQUERY_NOT_SUPPORTED",
          "node" -> DescribeNode.short(plan),
          "subquery" -> "a predicate beside a correlated one")
      case _ =>
    }
    plan.expressions.flatMap(subqueries).find(s => !StaticInference.isStatic(s.plan)).foreach {
      subquery =>
        throw analysis(
          "CHANGELOG_SUBQUERY_NOT_SUPPORTED",
          "node" -> DescribeNode.short(plan),
          "subquery" -> subquery.prettyName)
    }
  }

  private def subqueries(expression: Expression): Seq[SubqueryExpression] =
    expression.collect { case subquery: SubqueryExpression => subquery }
}

/**
 * Metrics of `observe` over changing rows: the difference made by each batch. The sum over all
 * batches is the metric of the batch query.
 *
 * {{{
 *   count(x)   =>   sum(x is NULL ? 0 : ±1)
 *   sum(x)     =>   sum(±x)
 * }}}
 *
 * Over insert-only rows, each batch measures the same as in Spark. Other functions, such as `max`
 * and `avg`, have no difference per batch.
 */
private[changelog] object SignedMetrics {

  /** Returns the reason why a metric is not computable over changes, or None. */
  def obstacle(metrics: CollectMetrics): Option[String] =
    calls(metrics).find(call => signed(call, Literal(RowKind.Insert)).isEmpty).map { call =>
      s"the metric ${DescribeNode.expression(call)} has no difference per batch: over changing " +
        "rows, only count and sum without DISTINCT have one. Compute the metric in a separate " +
        "query, or observe the output of to_changelog, which is insert-only"
    }

  /** Returns the metrics of `CollectMetrics`, computed over changes. */
  def apply(metrics: CollectMetrics, kind: Attribute): Seq[NamedExpression] =
    metrics.metrics.map { metric =>
      metric
        .transformUp { case call: AggregateExpression => signed(call, kind).get }
        .asInstanceOf[NamedExpression]
    }

  private def calls(metrics: CollectMetrics): Seq[AggregateExpression] =
    metrics.metrics.flatMap(_.collect { case call: AggregateExpression => call })

  private def signed(call: AggregateExpression, kind: Expression): Option[Expression] = {
    def sumOf(value: Expression) = call.copy(aggregateFunction = Sum(value))
    call.aggregateFunction match {
      case _ if call.isDistinct => None
      case Count(values) =>
        val isCounted = values.filter(_.nullable).map(IsNotNull(_)).reduceOption[Expression](And)
        val sign = RowKind.signOf(kind)
        val counted = isCounted.fold(sign)(If(_, sign, Literal(0L)))
        Some(Coalesce(Seq(sumOf(counted), Literal(0L))))
      case Sum(value, context) =>
        val wide = if (value.dataType.isInstanceOf[IntegralType]) Cast(value, LongType) else value
        val signed = If(RowKind.isRetraction(kind), UnaryMinus(wide), wide)
        Some(call.copy(aggregateFunction = Sum(signed, context)))
      case _ => None
    }
  }
}

/** The errors of inference: queries that `to_changelog` cannot support. */
object InferenceErrors {

  /**
   * The error for an insert-only consumer over changing rows. `input` is the origin of the
   * changes.
   */
  def consumerCannotTakeChanges(
      consumer: LogicalPlan,
      input: InferredNode,
      advice: String): AnalysisException =
    analysis(
      "CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES",
      "consumer" -> DescribeNode.short(consumer),
      "kinds" -> input.kinds.diff(ModifyKindSet.InsertOnly).words,
      "producer" -> input.producer.name,
      "advice" -> advice)

  def nodeNotSupported(
      plan: LogicalPlan,
      reason: String = "the effect of the node on changing rows is not known",
      advice: String = "Apply the node before from_changelog, or to the output of to_changelog.")
      : AnalysisException =
    analysis(
      "CHANGELOG_NODE_NOT_SUPPORTED",
      "node" -> DescribeNode.short(plan),
      "reason" -> reason,
      "advice" -> advice)

  /** `function` is [[First]] or [[Last]]. */
  def rowOrderUnknown(plan: LogicalPlan, function: AggregateFunction): AnalysisException = {
    val value = DescribeNode.expression(function.children.head)
    analysis(
      "CHANGELOG_ROW_ORDER_UNKNOWN",
      "node" -> DescribeNode.short(plan),
      "function" -> function.prettyName,
      "value" -> value,
      "ordered" -> s"${if (function.isInstanceOf[Last]) "max_by" else "min_by"}($value, t)")
  }
}
