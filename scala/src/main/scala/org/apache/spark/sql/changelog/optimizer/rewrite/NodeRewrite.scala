// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import scala.reflect.{ClassTag, classTag}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils

import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.inference.nodes.StaticInference
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, SignedMetrics}
import org.apache.spark.sql.changelog.plans.KeyedVersions
import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/**
 * OperatorIds: numbers the stateful operators and the sources of a plan, across every
 * `to_changelog`.
 *
 * @param first
 *   the first id beyond Spark's own operators
 */
private[optimizer] class OperatorIds(first: Long) {
  private var nextId = first
  private var numSources = 0

  def next(): Long = {
    val id = nextId
    nextId += 1
    id
  }

  /** Runs `body`, and returns the ids assigned meanwhile. */
  def during[T](body: => T): (T, Seq[Long]) = {
    val before = nextId
    val result = body
    (result, before until nextId)
  }

  /** Numbers the sources, from 1. */
  def nextSource(): Int = {
    numSources += 1
    numSources
  }
}

/**
 * Rewrites one kind of node over rewritten inputs.
 *
 * The result carries a `_row_kind` column exactly if the node's mode is not insert-only.
 */
private[optimizer] trait NodeRewrite {

  /** Whether this rewrite handles `node`. */
  def isDefinedAt(node: AnnotatedPlan): Boolean

  /** Returns the nodes whose rewritten plans are the inputs of the rewrite. */
  def inputs(node: AnnotatedPlan): Seq[AnnotatedPlan] = node.children

  def apply(context: RewriteContext): LogicalPlan
}

/** Rewrites the nodes of one class. */
private[optimizer] abstract class RewriteOf[P <: LogicalPlan: ClassTag] extends NodeRewrite {

  final override def isDefinedAt(node: AnnotatedPlan): Boolean =
    classTag[P].runtimeClass.isInstance(node.plan)

  final override def apply(context: RewriteContext): LogicalPlan =
    rewrite(context.node.plan.asInstanceOf[P], context)

  protected def rewrite(plan: P, context: RewriteContext): LogicalPlan
}

/**
 * A node to rewrite.
 *
 * @param inputs
 *   the rewritten plans of [[NodeRewrite.inputs]]
 */
private[optimizer] final case class RewriteContext(
    node: AnnotatedPlan,
    inputs: Seq[LogicalPlan],
    ids: OperatorIds) {

  /** The first input. */
  def input: LogicalPlan = inputs.head

  /** The row kind of the first input, or None for an insert-only input. */
  def inputKind: Option[Attribute] = RowKind.find(input.output)

  /** Returns a rewritten plan with exactly the node's columns, and a row kind if rows change. */
  def select(rewritten: LogicalPlan): LogicalPlan =
    NodeRewrite.select(rewritten, node.plan.output, withKind = !node.mode.isInsertOnly)
}

private[optimizer] object NodeRewrite {

  /** All rewrites of particular nodes. Other nodes are stateless. */
  val all: Seq[NodeRewrite] =
    Seq(
      StaticRewrite,
      SourceRewrite,
      UnionRewrite,
      ReplayRewrite,
      AggregateRewrite,
      RunningWindowRewrite,
      WindowRewrite,
      RankRewrite,
      JoinRewrite,
      TemporalJoinRewrite,
      HistoryRewrite,
      TemporalFilterRewrite,
      RowTtlRewrite,
      EmitRewrite,
      GroupedMapRewrite,
      RecursionRewrite)

  /** Returns the rewrite for `node`. */
  def forNode(node: AnnotatedPlan): NodeRewrite =
    all.find(_.isDefinedAt(node)).getOrElse(StatelessRewrite)

  /** Returns `plan` with exactly `columns`, and a row kind if `withKind`. */
  def select(plan: LogicalPlan, columns: Seq[Attribute], withKind: Boolean): LogicalPlan = {
    val kind = if (withKind) Some(rowKind(plan)) else None
    val wanted = columns ++ kind
    if (wanted.map(_.toAttribute.exprId) == plan.output.map(_.exprId)) plan
    else Project(wanted, plan)
  }

  /** Returns `plan`, whose updates are pairs, in the consumer's form of updates. */
  def sending(updateKind: UpdateKind, plan: LogicalPlan): LogicalPlan =
    if (updateKind != UpdateKind.OnlyUpdateAfter) plan
    else {
      val kind = RowKind.find(plan.output).get
      Filter(Not(EqualTo(kind, Literal(RowKind.UpdateBefore))), plan)
    }

  /** Returns the partitioning as columns with equal bytes for equal values. */
  def partitionColumns(partition: Seq[Expression], input: LogicalPlan): Seq[NamedExpression] =
    partition.filterNot(_.foldable).map { expression =>
      SparkRules.normalizeFloats(CollationKey.injectCollationKey(expression)) match {
        case column: Attribute => input.output.find(_.exprId == column.exprId).get
        case value => Alias(value, "partition")()
      }
    }

  /**
   * Returns columns with equal bytes for equal rows: an upsert key, or all comparable columns.
   */
  def placeOfRows(node: AnnotatedPlan): Seq[Attribute] = {
    val columns = node.plan.output.filter { column =>
      RowOrdering.isOrderable(column.dataType) && UnsafeRowUtils.isBinaryStable(column.dataType)
    }
    val keys = node.upsertKeys.map(key => columns.filter(key.contains)).filter(_.nonEmpty)
    keys.headOption.getOrElse(columns)
  }

  /** Returns an expression with equal bytes for equal values of `key`. */
  def sameBytes(key: Expression): Expression =
    if (UnsafeRowUtils.isBinaryStable(key.dataType)) SparkRules.normalizeFloats(key)
    else CollationKey(key)

  /** Returns the row kind of a rewritten plan, or `+I` if the plan has none. */
  private def rowKind(plan: LogicalPlan): NamedExpression =
    RowKind.find(plan.output).getOrElse(Alias(Literal(RowKind.Insert), RowKind.ColumnName)())
}

/**
 * Passes the row kind through stateless nodes.
 *
 * {{{
 *   Project [a + 1 AS b]     =>   Project [a + 1 AS b, _row_kind]
 *   +- changes                    +- changes
 * }}}
 */
private[optimizer] object StatelessRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = true

  override def apply(context: RewriteContext): LogicalPlan = {
    import context.{input, node}
    val kind = context.inputs.headOption.flatMap(input => RowKind.find(input.output))
    node.plan match {
      case project: Project =>
        Project(project.projectList ++ kind, input)
      case expand: Expand =>
        Expand(expand.projections.map(_ ++ kind), expand.output ++ kind, input)
      case generate: Generate =>
        generate.copy(unrequiredChildIndex = droppedColumns(generate, input), child = input)
      case metrics: CollectMetrics =>
        val measured = kind.fold(metrics.metrics)(SignedMetrics(metrics, _))
        metrics.copy(metrics = measured, child = input)
      case _: KeyedVersions => input
      case other => other.withNewChildren(context.inputs)
    }
  }

  /** Returns the indices of columns dropped by a generator. The row kind may shift them. */
  private def droppedColumns(generate: Generate, input: LogicalPlan): Seq[Int] = {
    val passedOn = AttributeSet(generate.requiredChildOutput)
    val columns = generate.child.outputSet -- passedOn
    input.output.indices.filter(index => columns.contains(input.output(index)))
  }
}

/**
 * Gives all inputs of a union equal columns. Rows of an insert-only input beside a changing one
 * are inserts.
 */
private[optimizer] object UnionRewrite extends RewriteOf[Union] {

  override protected def rewrite(union: Union, context: RewriteContext): LogicalPlan = {
    val aligned = union.children.zip(context.inputs).map { case (original, input) =>
      NodeRewrite.select(input, original.output, withKind = !context.node.mode.isInsertOnly)
    }
    union.withNewChildren(aligned)
  }
}

/**
 * Leaves static plans unchanged, for Spark to compute. Static rows beside a changelog come in the
 * first batch only.
 */
private[optimizer] object StaticRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = StaticInference.appliesTo(node.plan)

  override def apply(context: RewriteContext): LogicalPlan = context.node.plan
}
