// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.internal.config.{ConfigBindingPolicy, ConfigBuilder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, NearestByJoin}
import org.apache.spark.sql.classic.{DataFrame, DataFrameReader}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.internal.SQLConf

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

/** Finds `JOIN ... NEAREST BY`, while it is a join of its own. */
object NearestBy {
  def unapply(plan: LogicalPlan): Boolean = plan.isInstanceOf[NearestByJoin]
}

/** Begins the description of a setting: one of the session, within views and functions too. */
object Setting {
  def apply(key: String): ConfigBuilder =
    SQLConf.buildConf(key).withBindingPolicy(ConfigBindingPolicy.SESSION)
}

/** The changes that a catalog gives of a table: those of `FROM t CHANGES`. */
object SparkChanges {
  def apply(reader: DataFrameReader, table: String): DataFrame = reader.changes(table)
}

/** Makes one plan of two by what Spark merges plans by, see [[PlanMergers]]. */
object SparkPlanMerger {

  /** A plan that gives what both do; none if there is no such plan. */
  def apply(first: LogicalPlan, second: LogicalPlan): Option[MergedPlans] = {
    val merger = PlanMergers()
    merger.merge(first, subqueryPlan = false)
    val result = merger.merge(second, subqueryPlan = false)
    Option.when(result.mergedPlanIndex == 0)(
      MergedPlans(result.mergedPlan.plan, result.outputMap))
  }
}
