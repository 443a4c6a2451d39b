// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** A node that becomes an operator with state. */
trait KeepsState { this: LogicalPlan =>

  /** The operator's number in the query, which names the folder of its state. */
  def operatorId: Long
}
