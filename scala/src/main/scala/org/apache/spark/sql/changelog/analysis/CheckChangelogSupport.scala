// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan}
import org.apache.spark.sql.catalyst.streaming.WriteToStream
import org.apache.spark.sql.classic.ClassicConversions.castToImpl

import org.apache.spark.sql.changelog.plans.ToChangelog

/**
 * Refuses, at `start()`, a query that can't be kept up to date, naming the node that is in the way.
 *
 * What a node can do is known only once Spark has optimized the query, so the query is optimized
 * here as it will be in each batch.
 */
class CheckChangelogSupport(session: SparkSession) extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit = plan match {
    case write: WriteToStream if write.inputQuery.exists(_.isInstanceOf[ToChangelog]) =>
      AnalysisHelper.allowInvokingTransformsInAnalyzer {
        castToImpl(session).sessionState.optimizer.execute(write.inputQuery)
      }
    case _ =>
  }
}
