// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.execution.planmerging.PlanMerger

/** Makes what Spark merges plans by, such that it leaves filters where they are. */
private[compat] object PlanMergers {
  def apply(): PlanMerger = new PlanMerger(false, false, false, false)
}
