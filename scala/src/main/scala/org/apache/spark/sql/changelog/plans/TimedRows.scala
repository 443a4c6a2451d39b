// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.types.{DataType, DateType, TimestampNTZType, TimestampType}

import org.apache.spark.sql.changelog.RowKind

/**
 * Keeps the rows that meet conditions on the time. Present only between normalization and rewriting; a plan is never executed with it.
 *
 * @param conditions
 *   as [[org.apache.spark.sql.changelog.inference.times.TemporalCondition]] makes them
 */
case class TemporalFilter(conditions: Seq[Expression], child: LogicalPlan) extends UnaryNode {

  def condition: Expression = conditions.reduce(And(_, _))

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): TemporalFilter =
    copy(child = newChild)
}

/**
 * Keeps the rows that meet conditions on the time, and emits those that come and go as it passes.
 *
 * @param conditions
 *   as [[org.apache.spark.sql.changelog.inference.times.TemporalCondition]] makes them
 * @param placedBy
 *   the columns rows are shuffled by; equal rows agree on them
 * @param inputKind
 *   the row kind of `child`, none if it is insert-only
 * @param outputKind
 *   the row kind of the result
 * @param operatorId
 *   identifies the operator's state within the query
 */
case class ChangelogTemporalFilter(
    conditions: Seq[Expression],
    placedBy: Seq[Attribute],
    inputKind: Option[Attribute],
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan)
    extends UnaryNode
    with KeepsState {

  /** The columns of a row, without its kind. */
  def columns: Seq[Attribute] =
    RowKind.without(inputKind, child.output)

  override def output: Seq[Attribute] = columns :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  /** A row is kept with all its columns. */
  @transient override lazy val references: AttributeSet = child.outputSet

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogTemporalFilter =
    copy(child = newChild)
}

/**
 * What time it is, in a query that is kept up to date: another value in each batch.
 *
 * Spark would put a constant in its place, and push no condition on it down. This is no constant to
 * Spark, but the same for all rows. Conditions on it become a [[TemporalFilter]]; anything else with
 * it is refused.
 *
 * @param time
 *   what stands for it in the query, such as `now()`
 */
case class PassingTime(time: Expression) extends LeafExpression with Unevaluable {
  override def dataType: DataType = time.dataType
  override def nullable: Boolean = time.nullable
  override def sql: String = time.sql
  override def toString: String = time.toString

  /** Whether it is a time that goes on and on: the time of day begins anew. */
  def goesOn: Boolean = time match {
    case _: CurrentTimestamp | _: Now | _: CurrentDate | _: LocalTimestamp => true
    case _ => false
  }

  /** What it is when the time is `clock`, a TIMESTAMP. */
  def at(clock: Expression): Expression = time match {
    case date: CurrentDate => Cast(clock, DateType, date.timeZoneId)
    case local: LocalTimestamp => Cast(clock, TimestampNTZType, local.timeZoneId)
    case _ => clock
  }
}

object PassingTime {

  def isIn(expression: Expression): Boolean = expression.exists(_.isInstanceOf[PassingTime])

  /** The expression when the time is `clock`. */
  def at(expression: Expression, clock: Expression): Expression = {
    require(clock.dataType == TimestampType)
    expression.transform { case time: PassingTime => time.at(clock) }
  }
}

/**
 * Lets rows of `child` leave that nothing has changed for some time: a `ROW_TTL` hint in its place in
 * the query.
 *
 * {{{
 *   SELECT /*+ ROW_TTL(o, '3 days') */ ...      Project
 *   FROM orders o                            =>    +- RowTtl 3 days
 *                                                     +- SubqueryAlias o
 * }}}
 * A row that differs in any column is another one, so no column of `child` is left out.
 *
 * @param ttl
 *   in ms
 * @param problem
 *   what is wrong with the hint, which matters below `to_changelog` only
 */
case class RowTtl(ttl: Long, child: LogicalPlan, problem: Option[AnalysisException] = None)
    extends UnaryNode {
  override def output: Seq[Attribute] = child.output

  @transient override lazy val references: AttributeSet = child.outputSet

  override protected def withNewChildInternal(newChild: LogicalPlan): RowTtl =
    copy(child = newChild)
}

/**
 * Takes back rows that nothing has changed for some time.
 *
 * @param ttl
 *   in ms
 * @param placedBy
 *   the columns rows are shuffled by; equal rows agree on them
 * @param inputKind
 *   the row kind of `child`, none if it is insert-only
 * @param outputKind
 *   the row kind of the result
 * @param operatorId
 *   identifies the operator's state within the query
 */
case class ChangelogRowTtl(
    ttl: Long,
    placedBy: Seq[Attribute],
    inputKind: Option[Attribute],
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan)
    extends UnaryNode
    with KeepsState {

  override def output: Seq[Attribute] =
    RowKind.without(inputKind, child.output) :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  /** A row is kept with all its columns. */
  @transient override lazy val references: AttributeSet = child.outputSet

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogRowTtl =
    copy(child = newChild)
}

/**
 * Gives each row once, when the watermark has passed its time. Present only between inference and
 * rewriting; a plan is never executed with it.
 *
 * @param times
 *   event times of a row, each a timestamp. The row's time is the latest of those that are not NULL
 * @param delays
 *   what is added to each of them, in ms
 */
case class EmitOnClose(times: Seq[Expression], delays: Seq[Long], child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): EmitOnClose =
    copy(child = newChild)
}

/**
 * Gives each row once, when the watermark has passed its time: the rewritten form of [[EmitOnClose]].
 *
 * @param times
 *   event times of a row, each a timestamp. The row's time is the latest of those that are not NULL
 * @param delays
 *   what is added to each of them, in ms
 * @param placedBy
 *   the columns rows are shuffled by; equal rows agree on them
 * @param inputKind
 *   the row kind of `child`
 * @param operatorId
 *   identifies the operator's state within the query
 */
case class ChangelogEmitOnClose(
    times: Seq[Expression],
    delays: Seq[Long],
    placedBy: Seq[Attribute],
    inputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan)
    extends UnaryNode
    with KeepsState {

  /** The columns of a row; it only comes, and so needs no kind. */
  override def output: Seq[Attribute] = child.output.filterNot(_.exprId == inputKind.exprId)

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogEmitOnClose =
    copy(child = newChild)
}
