// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._

/** The predicates by which Spark removes rows of its own joins of streams. */
private[compat] object JoinPredicates {
  val find: JoinBounds.FindPredicates =
    StreamingSymmetricHashJoinHelper.getStateWatermarkPredicates(_, _, _, _, _, _, None, _)

  /** Up to which time one removes rows, in ms since 1970. */
  def watermarkOf(predicate: JoinStateWatermarkPredicate): Long = predicate match {
    case key: JoinStateKeyWatermarkPredicate => key.stateWatermark
    case row: JoinStateValueWatermarkPredicate => row.stateWatermark
  }
}
