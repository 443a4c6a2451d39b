// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.internal.config.{ConfigBindingPolicy, ConfigBuilder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, NearestByJoin}
import org.apache.spark.sql.classic.{DataFrame, DataFrameReader}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.internal.SQLConf

/** The predicates by which Spark expires rows of stream-stream joins. */
private[compat] object JoinPredicates {
  val find: JoinBounds.FindPredicates =
    StreamingSymmetricHashJoinHelper.getStateWatermarkPredicates(_, _, _, _, _, _, None, _)

  /** Returns the state watermark of a predicate, in ms since 1970. */
  def watermarkOf(predicate: JoinStateWatermarkPredicate): Long = predicate match {
    case key: JoinStateKeyWatermarkPredicate => key.stateWatermark
    case row: JoinStateValueWatermarkPredicate => row.stateWatermark
  }
}

/** Matches `JOIN ... NEAREST BY`, before Spark rewrites it. */
object NearestBy {
  def unapply(plan: LogicalPlan): Boolean = plan.isInstanceOf[NearestByJoin]
}

/** Starts the definition of a setting. Views and functions use the session's value. */
object Setting {
  def apply(key: String): ConfigBuilder =
    SQLConf.buildConf(key).version("0.1.0").withBindingPolicy(ConfigBindingPolicy.SESSION)
}

/** The changes of a table from a catalog, as in `FROM t CHANGES`. */
object SparkChanges {
  def apply(reader: DataFrameReader, table: String): DataFrame = reader.changes(table)
}

/** Merges two plans with Spark's plan merger, see [[PlanMergers]]. */
object SparkPlanMerger {

  /** Returns a plan with the columns of both plans; empty if Spark cannot merge the plans. */
  def apply(first: LogicalPlan, second: LogicalPlan): Option[MergedPlans] = {
    val merger = PlanMergers()
    merger.merge(first, subqueryPlan = false)
    val result = merger.merge(second, subqueryPlan = false)
    Option.when(result.mergedPlanIndex == 0)(
      MergedPlans(result.mergedPlan.plan, result.outputMap))
  }
}
