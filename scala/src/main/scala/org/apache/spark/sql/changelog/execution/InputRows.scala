// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.execution.{ExpandExec, SparkPlan}

import org.apache.spark.sql.changelog.execution.aggregate.{
  ChangesByTaskExec,
  CombineByTaskExec,
  ValueSampleExec
}
import org.apache.spark.sql.changelog.execution.shared.SharedReadingExec

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
