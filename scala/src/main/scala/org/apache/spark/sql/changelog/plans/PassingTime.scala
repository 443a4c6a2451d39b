// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{DataType, DateType, TimestampNTZType, TimestampType}

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
