// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * A node that can't be run at once while rows come to it batch by batch.
 *
 * Spark refuses a plan at the first stream that it meets from below, and says how a query of its own is
 * started. What is missing here depends on the nodes above that stream, so these say it instead.
 */
private[plans] trait StartedOnly extends LogicalPlan {

  /** Whether rows come batch by batch. */
  def streaming: Boolean

  /** What is missing to run the plan. */
  protected def notStarted: AnalysisException

  override def foreachUp(f: LogicalPlan => Unit): Unit =
    try super.foreachUp(f)
    catch {
      case refused: AnalysisException if streaming && StartedOnly.isMeant(refused) =>
        throw notStarted
    }
}

private object StartedOnly {

  /** What Spark says of a stream, or a node below of its own: the topmost decides. */
  private def isMeant(refused: AnalysisException): Boolean =
    refused.getMessage.contains("must be executed with writeStream.start()") ||
      refused.getCondition == "CHANGELOG_CHANGES_NOT_ASKED_FOR"
}
