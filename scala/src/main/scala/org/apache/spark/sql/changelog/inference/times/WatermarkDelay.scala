// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.times

import org.apache.spark.sql.catalyst.plans.logical.Join

import org.apache.spark.sql.changelog.inference.nodes.InferredNode
import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * How long after the watermark of its sources an operator above a node has it, in ms: joins give rows
 * whose event times it has passed.
 */
private[inference] object WatermarkDelay {

  def apply(node: InferredNode): Long = {
    def below = node.children.map(apply).maxOption.getOrElse(0L)
    node.plan match {
      case _: FromChangelog => 0L
      case join: Join if !node.children.exists(_.isStatic) => below + JoinWatermark(join).delay
      case _ => below
    }
  }
}
