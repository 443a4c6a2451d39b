// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.optimizer.PlanMerger

/** Creates Spark's plan merger with filters kept in place. */
private[compat] object PlanMergers {
  def apply(): PlanMerger = new PlanMerger(
    filterPropagationEnabled = false,
    symmetricFilterPropagationEnabled = false,
    filterPropagationThroughJoinEnabled = false)
}
