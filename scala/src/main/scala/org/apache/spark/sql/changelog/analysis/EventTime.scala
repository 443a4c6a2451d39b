// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions.{Expression, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark

/** Finds columns a watermark is set on, as Spark marks them. */
object EventTime {

  /** The name of the event time column (or window of one) that `expression` is, if it is one. */
  def columnOf(expression: Expression): Option[String] = expression match {
    case named: NamedExpression if named.metadata.contains(EventTimeWatermark.delayKey) =>
      Some(named.name)
    case _ => None
  }
}
