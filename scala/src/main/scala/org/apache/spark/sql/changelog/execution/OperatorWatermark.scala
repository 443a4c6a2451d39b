// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.catalyst.expressions.{Attribute, BasePredicate, Predicate}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  EventTimeWatermarkExec, StateStoreWriter, WatermarkSupport
}
import org.apache.spark.sql.execution.{ExpandExec, SparkPlan}

import org.apache.spark.sql.changelog.execution.aggregate._
import org.apache.spark.sql.changelog.execution.shared.SharedReadingExec
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.microbatch.BatchTime

/**
 * Simulates the watermark at an operator.
 *
 * {{{
 *   aggregate        11:40
 *   +- join          12:00, emits rows up to 20 minutes older than the watermark
 *      :- watermark  12:00
 *      +- watermark  12:00
 * }}}
 * Spark's own simulation is the same, but looks neither through shared parts nor through reused exchanges.
 */
private[execution] object OperatorWatermark {

  /**
   * Returns the watermark of the input of `operator`, in ms; None if no watermark is set below. `origin` is the
   * query's watermark.
   */
  def below(operator: SparkPlan, origin: Long): Option[Long] =
    simulate(operator, origin, _.produceOutputWatermark(_))

  /** Returns the watermark of the sources below, ignoring the delays of changelog operators. */
  def ofSources(operator: SparkPlan, origin: Long): Option[Long] = simulate(
    operator,
    origin,
    {
      case (_: ChangelogStateWriter, watermark) => Some(watermark)
      case (other, watermark) => other.produceOutputWatermark(watermark)
    })

  private def simulate(
      operator: SparkPlan,
      origin: Long,
      produce: (StateStoreWriter, Long) => Option[Long]): Option[Long] = {
    def below(plan: SparkPlan): Option[Long] = plan.children.flatMap(above).minOption
    def above(plan: SparkPlan): Option[Long] = plan match {
      case _: EventTimeWatermarkExec => Some(origin)
      case reused: ReusedExchangeExec => above(reused.child)
      case reading: SharedReadingExec => above(reading.changes.part)
      case writer: StateStoreWriter => below(writer).flatMap(produce(writer, _))
      case other => below(other)
    }
    below(operator)
  }
}

/**
 * Bounds a state by the watermark on the event time, or time window, in the state's key. No further row changes
 * entries older than the watermark.
 *
 * @param column
 *   the event time
 * @param late
 *   the watermark, in ms, that makes rows late: the watermark of the previous batch
 * @param eviction
 *   the watermark, in ms, at and below which entries expire after this batch
 */
final case class EventTimeBound(column: Attribute, late: Option[Long], eviction: Option[Long]) {

  /** Returns a predicate for late rows of the columns `input`; None if no row can be late. */
  def isLate(input: Seq[Attribute]): Option[BasePredicate] =
    WatermarkSupport
      .watermarkExpression(Some(column), late)
      .map(Predicate.create(_, input))

  /** The watermark of this batch, in ms; None if the watermark has not moved since the previous batch. */
  def moved: Option[Long] = BatchTime.moved(late, eviction)
}

object EventTimeBound {

  /** Returns the bound of a state with the columns `key`; None without an event time among the columns. */
  def apply(key: Seq[Attribute], time: => BatchTime): Option[EventTimeBound] =
    EventTime
      .firstOf(key)
      .map(EventTimeBound(_, time.lateWatermark, time.evictionWatermark))
}

/**
 * Counts the input rows of an operator in a batch, from the metrics of the nodes below. No row is counted a
 * second time. Rows count before Spark combines rows for the operator, and before an expand copies rows for
 * several functions.
 */
object InputRows {

  /** Returns the number of input rows; None if a node below has no count. Called on the driver after the batch. */
  def apply(operator: SparkPlan): Option[Long] = counted(operator.children)

  private def counted(plans: Seq[SparkPlan]): Option[Long] = {
    val counts = plans.map(count)
    if (counts.exists(_.isEmpty)) None else Some(counts.flatten.sum)
  }

  private def count(plan: SparkPlan): Option[Long] = plan match {
    case reused: ReusedExchangeExec => count(reused.child)
    case reading: SharedReadingExec => count(reading.changes.part)
    case _: NoRowsExec => Some(0L)
    case _: BaseAggregateExec | _: ExpandExec => counted(plan.children)
    case _: ValueSampleExec | _: CombineByTaskExec | _: ChangesByTaskExec =>
      counted(plan.children)
    case _ =>
      plan.metrics.get("numOutputRows") match {
        case Some(metric) => Some(metric.value)
        case None if plan.children.isEmpty => None
        case None => counted(plan.children)
      }
  }
}
