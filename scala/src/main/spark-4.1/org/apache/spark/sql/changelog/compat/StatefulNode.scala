// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.plans.logical._

/** Whether Spark keeps state for a node; this version says it to nobody. */
private[compat] object StatefulNode {
  def apply(node: LogicalPlan): Boolean = node.isStreaming && (node match {
    case join: Join => join.left.isStreaming && join.right.isStreaming
    case rows: Deduplicate =>
      rows.keys.exists(_.metadata.contains(EventTimeWatermark.delayKey))
    case _: Aggregate | _: Distinct | _: DeduplicateWithinWatermark | _: FlatMapGroupsWithState |
        _: FlatMapGroupsInPandasWithState | _: TransformWithState |
        _: TransformWithStateInPySpark =>
      true
    case _ => false
  })
}
