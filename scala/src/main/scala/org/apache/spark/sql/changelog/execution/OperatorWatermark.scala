// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  EventTimeWatermarkExec,
  StateStoreWriter
}

import org.apache.spark.sql.changelog.execution.shared.SharedReadingExec

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
