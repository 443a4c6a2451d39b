// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.catalyst.expressions.{Attribute, BasePredicate, Predicate}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  EventTimeWatermarkExec,
  StateStoreWriter,
  WatermarkSupport
}
import org.apache.spark.sql.execution.{ExpandExec, SparkPlan}

import org.apache.spark.sql.changelog.execution.aggregate._
import org.apache.spark.sql.changelog.execution.shared.SharedReadingExec
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.microbatch.BatchTime

/**
 * How far a watermark has come where an operator stands.
 *
 * {{{
 *   aggregate        11:40
 *   +- join          12:00, its rows come up to 20 minutes after the watermark has passed them
 *      :- watermark  12:00
 *      +- watermark  12:00
 * }}}
 * The same as in Spark's own simulation, which doesn't look into what is read once more.
 */
private[execution] object OperatorWatermark {

  /**
   * The watermark of what `operator` reads, in ms, where that of the query is `origin`; none if none is
   * set below.
   */
  def below(operator: SparkPlan, origin: Long): Option[Long] =
    simulate(operator, origin, _.produceOutputWatermark(_))

  /** The watermark of the sources below, as if none of our operators held any row up. */
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
 * How a watermark bounds a state whose key holds an event time, or a window of one: nobody will
 * change what is older than it.
 *
 * @param column
 *   the event time
 * @param late
 *   the watermark, in ms, at and below which a change comes too late: that of the batch before
 * @param over
 *   the watermark, in ms, at and below which an entry is over after this batch
 */
final case class EventTimeBound(column: Attribute, late: Option[Long], over: Option[Long]) {

  /** Tells of a row, of the columns `input`, whether it comes too late; none if no row can. */
  def isLate(input: Seq[Attribute]): Option[BasePredicate] =
    WatermarkSupport
      .watermarkExpression(Some(column), late)
      .map(Predicate.create(_, input))

  /** The watermark of this batch, in ms, if it is another than that of the batch before. */
  def moved: Option[Long] = BatchTime.moved(late, over)
}

object EventTimeBound {

  /** The bound of a state with the columns `key`, if there is an event time among them. */
  def apply(key: Seq[Attribute], time: => BatchTime): Option[EventTimeBound] =
    EventTime
      .firstOf(key)
      .map(EventTimeBound(_, time.lateWatermark, time.overWatermark))
}

/**
 * Tells how many rows an operator was given in a batch: as many as what is below it has counted. So
 * nothing needs to be counted a second time. Rows count before they are combined for the operator, or
 * copied for several functions of it.
 */
object InputRows {

  /** None if not everything below counts. Called on the driver, when the batch is done. */
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
