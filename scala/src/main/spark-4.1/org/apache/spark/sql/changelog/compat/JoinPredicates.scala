// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.expressions.{LessThanOrEqual, Literal}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._

/** The predicates by which Spark removes rows of its own joins of streams. */
private[compat] object JoinPredicates {
  val find: JoinBounds.FindPredicates =
    StreamingSymmetricHashJoinHelper.getStateWatermarkPredicates(_, _, _, _, _, _, _)

  /** Up to which time one removes rows, in ms since 1970; in this version only its expression tells. */
  def watermarkOf(predicate: JoinStateWatermarkPredicate): Long = predicate.expr match {
    case LessThanOrEqual(_, Literal(micros: Long, _)) => micros / 1000
    case other => throw SparkException.internalError(s"Rows are removed by $other")
  }
}
