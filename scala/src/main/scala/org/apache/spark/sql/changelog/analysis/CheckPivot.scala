// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Sort}

import org.apache.spark.sql.changelog.inference.{DescribeNode, InferenceErrors}
import org.apache.spark.sql.changelog.plans.{FromChangelog, ToChangelog}

/**
 * Refuses `pivot` without values over a table that a stream keeps. Spark runs a query of its own to
 * find them, which it refuses for streams it knows of, and the table hides its stream from it.
 */
object CheckPivot extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit = plan match {
    case Sort(order, true, _, _) if readsStream(plan) && looksForValues =>
      throw InferenceErrors.pivotWithoutValues(DescribeNode.expression(order.head.child))
    case _ =>
  }

  private def readsStream(plan: LogicalPlan): Boolean = plan match {
    case _: ToChangelog => false
    case source: FromChangelog => source.streaming
    case other => other.children.exists(readsStream)
  }

  /** The query itself looks like any other. */
  private def looksForValues: Boolean =
    StackWalker.getInstance.walk[Boolean](_.anyMatch(_.getMethodName == "collectPivotValues"))
}
