// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Finds nothing: in this version sources have no names. */
object NamedStream {
  def unapply(plan: LogicalPlan): Option[LogicalPlan] = None
}
