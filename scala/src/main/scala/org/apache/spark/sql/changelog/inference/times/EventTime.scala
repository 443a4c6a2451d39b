// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.times

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark
import org.apache.spark.sql.execution.streaming.operators.stateful.WatermarkSupport

/** Finds columns a watermark is set on, as Spark marks them. */
object EventTime {

  /** The name of the event time column (or window of one) that `expression` is, if it is one. */
  def columnOf(expression: Expression): Option[String] = expression match {
    case named: NamedExpression if named.metadata.contains(EventTimeWatermark.delayKey) =>
      Some(named.name)
    case _ => None
  }

  /** The first event time, or window of one, among `columns`: that by which Spark bounds a state. */
  def firstOf(columns: Seq[Attribute]): Option[Attribute] =
    WatermarkSupport.findEventTimeColumn(columns, allowMultipleEventTimeColumns = true)
}
