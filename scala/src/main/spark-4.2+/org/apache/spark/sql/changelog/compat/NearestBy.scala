// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, NearestByJoin}

/** Finds `JOIN ... NEAREST BY`, while it is a join of its own. */
object NearestBy {
  def unapply(plan: LogicalPlan): Boolean = plan.isInstanceOf[NearestByJoin]
}
