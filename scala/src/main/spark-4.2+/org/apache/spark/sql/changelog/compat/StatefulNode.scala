// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Whether Spark keeps state for a node, as it says itself. */
private[compat] object StatefulNode {
  def apply(node: LogicalPlan): Boolean = UnsupportedOperationChecker.isStatefulOperation(node)
}
