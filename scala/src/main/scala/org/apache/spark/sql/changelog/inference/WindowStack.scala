// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Window}

/**
 * Window nodes directly above each other that partition their rows alike. Spark makes one node per
 * order; together they need the rows of a partition only once.
 */
object WindowStack {

  /** The windows that share their rows with `plan`, itself included, the lowest first. */
  def apply(plan: LogicalPlan): Seq[Window] = {
    val window = plan.asInstanceOf[Window]
    if (sharesRows(window)) apply(window.child) :+ window else Seq(window)
  }

  /** Whether `plan` is a window over the rows that the window below it keeps. */
  def sharesRows(plan: LogicalPlan): Boolean = plan match {
    case Window(_, partition, _, below: Window, _) =>
      partition.size == below.partitionSpec.size &&
      partition.zip(below.partitionSpec).forall { case (one, other) => one.semanticEquals(other) }
    case _ => false
  }
}
