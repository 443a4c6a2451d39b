// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.SparkException
import org.apache.spark.internal.config.ConfigBuilder
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap, LessThanOrEqual, Literal}
import org.apache.spark.sql.catalyst.optimizer.MergeScalarSubqueries
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{DataFrame, DataFrameReader}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.internal.SQLConf

/** The predicates by which Spark expires rows of stream-stream joins. */
private[compat] object JoinPredicates {
  val find: JoinBounds.FindPredicates =
    StreamingSymmetricHashJoinHelper.getStateWatermarkPredicates(_, _, _, _, _, _, _)

  /**
   * Returns the state watermark of a predicate, in ms since 1970. In Spark 4.1 only the predicate's
   * expression contains the watermark.
   */
  def watermarkOf(predicate: JoinStateWatermarkPredicate): Long = predicate.expr match {
    case LessThanOrEqual(_, Literal(micros: Long, _)) => micros / 1000
    case other => throw SparkException.internalError(s"Rows are removed by $other")
  }
}

/** Never matches, because Spark 4.1 has no `JOIN ... NEAREST BY`. */
object NearestBy {
  def unapply(plan: LogicalPlan): Boolean = false
}

/** Starts the definition of a setting. Views and functions use the session's value. */
object Setting {
  def apply(key: String): ConfigBuilder = SQLConf.buildConf(key).version("0.1.0")
}

/** The changes of a table from a catalog, not supported in Spark 4.1. */
object SparkChanges {
  def apply(reader: DataFrameReader, table: String): DataFrame =
    throw new UnsupportedOperationException(s"catalogs give no changes of $table in Spark 4.1")
}

/**
 * Merges two plans with Spark's code for merging scalar subqueries. The merge keeps filters in place.
 *
 * In Spark 4.1 the code is a private method of a rule.
 */
object SparkPlanMerger {
  private lazy val merging = {
    val merging = MergeScalarSubqueries.getClass.getDeclaredMethod(
      "tryMergePlans",
      classOf[LogicalPlan],
      classOf[LogicalPlan])
    merging.setAccessible(true)
    merging
  }

  /** Returns a plan with the columns of both plans; empty if Spark cannot merge the plans. */
  def apply(first: LogicalPlan, second: LogicalPlan): Option[MergedPlans] =
    merging
      .invoke(MergeScalarSubqueries, second, first)
      .asInstanceOf[Option[(LogicalPlan, AttributeMap[Attribute])]]
      .map { case (merged, columns) =>
        val places = second.output.map { column =>
          column -> merged.output.indexWhere(_.exprId == columns(column).exprId)
        }
        MergedPlans(merged, AttributeMap(places))
      }
}
