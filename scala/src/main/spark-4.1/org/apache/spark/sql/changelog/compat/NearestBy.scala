// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Finds nothing: this version has no `JOIN ... NEAREST BY`. */
object NearestBy {
  def unapply(plan: LogicalPlan): Boolean = false
}
