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

/** Finds nothing: this version has no `JOIN ... NEAREST BY`. */
object NearestBy {
  def unapply(plan: LogicalPlan): Boolean = false
}

/** Begins the description of a setting: one of the session, within views and functions too. */
object Setting {
  def apply(key: String): ConfigBuilder = SQLConf.buildConf(key)
}

/** The changes that a catalog gives of a table, of which this version knows nothing. */
object SparkChanges {
  def apply(reader: DataFrameReader, table: String): DataFrame =
    throw new UnsupportedOperationException(s"catalogs give no changes of $table in Spark 4.1")
}

/**
 * Makes one plan of two by what Spark merges scalar subqueries by, which leaves filters where they are.
 *
 * This version has it within a rule that keeps it to itself, and only later ones have it by itself.
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

  /** A plan that gives what both do; none if there is no such plan. */
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
