// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.types.{DataType, DateType, TimestampNTZType, TimestampType}

/**
 * Filters rows by conditions on the current time. Present only between normalization and
 * rewriting; a plan is never executed with it.
 *
 * @param conditions
 *   conditions in the form of [[org.apache.spark.sql.changelog.inference.times.TemporalCondition]]
 */
case class TemporalFilter(conditions: Seq[Expression], child: LogicalPlan) extends UnaryNode {

  def condition: Expression = conditions.reduce(And(_, _))

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): TemporalFilter =
    copy(child = newChild)
}

/**
 * Filters rows by the conditions of a [[TemporalFilter]], and emits rows that enter and leave over time.
 *
 * @param placedBy
 *   the shuffle columns, equal for equal rows
 */
case class ChangelogTemporalFilter(
    conditions: Seq[Expression],
    placedBy: Seq[Attribute],
    inputKind: Option[Attribute],
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan)
    extends StoresRows {

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogTemporalFilter =
    copy(child = newChild)
}

/**
 * The current time in a query with `to_changelog`: another value in each batch.
 *
 * Spark would insert a constant and push down no condition on it. [[PassingTime]] is no constant for Spark, but equal
 * for all rows. Conditions on it become a [[TemporalFilter]]. Other uses are errors.
 *
 * @param time
 *   the original expression, such as `now()`
 */
case class PassingTime(time: Expression) extends LeafExpression with Unevaluable {
  override def dataType: DataType = time.dataType
  override def nullable: Boolean = time.nullable
  override def sql: String = time.sql
  override def toString: String = time.toString

  /** Whether the time only grows. The time of day starts again each day. */
  def advances: Boolean = time match {
    case _: CurrentTimestamp | _: Now | _: CurrentDate | _: LocalTimestamp => true
    case _ => false
  }

  /** Returns the value at `clock`, a TIMESTAMP. */
  def at(clock: Expression): Expression = time match {
    case date: CurrentDate => Cast(clock, DateType, date.timeZoneId)
    case local: LocalTimestamp => Cast(clock, TimestampNTZType, local.timeZoneId)
    case _ => clock
  }
}

object PassingTime {

  def isIn(expression: Expression): Boolean = expression.exists(_.isInstanceOf[PassingTime])

  /** Returns the expression at `clock`. */
  def at(expression: Expression, clock: Expression): Expression = {
    require(clock.dataType == TimestampType)
    expression.transform { case time: PassingTime => time.at(clock) }
  }
}

/**
 * A `ROW_TTL` hint at its place in the query: deletes rows of `child` unchanged for some time.
 *
 * {{{
 *   SELECT /*+ ROW_TTL(o, '3 days') */ ...      Project
 *   FROM orders o                            =>    +- RowTtl 3 days
 *                                                     +- SubqueryAlias o
 * }}}
 *
 * A row that differs in any column is a different row, so no column of `child` is pruned.
 *
 * @param ttl
 *   in ms
 * @param problem
 *   the error in the hint, thrown only below `to_changelog`
 */
case class RowTtl(ttl: Long, child: LogicalPlan, problem: Option[AnalysisException] = None)
    extends UnaryNode {
  override def output: Seq[Attribute] = child.output

  @transient override lazy val references: AttributeSet = child.outputSet

  override protected def withNewChildInternal(newChild: LogicalPlan): RowTtl =
    copy(child = newChild)
}

/**
 * Retracts rows that have not changed for some time.
 *
 * @param ttl
 *   in ms
 * @param placedBy
 *   the shuffle columns, equal for equal rows
 */
case class ChangelogRowTtl(
    ttl: Long,
    placedBy: Seq[Attribute],
    inputKind: Option[Attribute],
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan)
    extends StoresRows {

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogRowTtl =
    copy(child = newChild)
}

/**
 * Holds changes until they are to be emitted. Present only between inference and rewriting; a plan
 * is never executed with it.
 *
 * @param times
 *   for [[Emission.OnClose]], the event times of a row, each a timestamp. The latest non-null one counts.
 * @param delays
 *   the delay of each time, in ms
 * @param order
 *   the order of emitted rows, by the only event time first; empty for any order
 */
case class Emit(
    emission: Emission,
    times: Seq[Expression],
    delays: Seq[Long],
    order: Seq[SortOrder],
    child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): Emit =
    copy(child = newChild)
}

/**
 * Holds changes until they are to be emitted: the rewritten form of [[Emit]].
 *
 * @param inOneTask
 *   whether one task emits all rows
 * @param placedBy
 *   the columns by which rows are netted and, in several tasks, shuffled. Equal for equal rows
 */
case class ChangelogEmit(
    emission: Emission,
    times: Seq[Expression],
    delays: Seq[Long],
    inOneTask: Boolean,
    placedBy: Seq[Attribute],
    inputKind: Option[Attribute],
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan)
    extends StoresRows {

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogEmit =
    copy(child = newChild)
}
