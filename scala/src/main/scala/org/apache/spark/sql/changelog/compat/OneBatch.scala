// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1
import org.apache.spark.sql.execution.streaming.{OneTimeTrigger, Sink}
import org.apache.spark.sql.streaming.{OutputMode, Trigger}
import org.apache.spark.sql.{DataFrame => AnyDataFrame}

/** Runs the single batch that a checkpoint lists as begun, to read the batch's plan. */
object OneBatch {

  /** Runs only the begun batch. */
  val Only: Trigger = OneTimeTrigger

  /**
   * Runs the batch and calls `read` during the batch.
   *
   * @param query
   *   a streaming query
   * @param read
   *   receives the session, and the query with the batch's rows as sources
   */
  def run(session: SparkSession, query: LogicalPlan, checkpoint: Path)(
      read: (SparkSession, LogicalPlan) => Unit): Unit = {
    // a clone without queries, so without listeners
    val own = session.cloneSession()
    new ForwardedListeners(own, own).run(
      own.sessionState.streamingQueryManager.startQuery(
        userSpecifiedName = None,
        userSpecifiedCheckpointLocation = Some(checkpoint.toString),
        df = Dataset.ofRows(own, query),
        extraOptions = Map.empty,
        sink = new PlanSink(read),
        outputMode = OutputMode.Append(),
        trigger = Only))
  }

  /** Returns the plan of a batch as a batch plan, replacing Spark's own streaming sources. */
  def asBatchPlan(session: SparkSession, plan: LogicalPlan): LogicalPlan = plan.transform {
    case relation: LogicalRelation => relation.copy(isStreaming = false)
    case rows: LogicalRDD =>
      LogicalRDD(rows.output, rows.rdd, rows.outputPartitioning, rows.outputOrdering)(session)
    case rows: LocalRelation => rows.copy(isStreaming = false)
    case scan: StreamingDataSourceV2ScanRelation =>
      LogicalRDD(scan.output, session.sessionState.planner.plan(scan).next().execute())(session)
  }

  private class PlanSink(read: (SparkSession, LogicalPlan) => Unit) extends Sink {
    override def addBatch(batchId: Long, data: AnyDataFrame): Unit = {
      val query = castToImpl(data).queryExecution.logical match {
        case write: WriteToMicroBatchDataSourceV1 => write.child
        case other => other
      }
      val session = castToImpl(data.sparkSession)
      RunningStream(session).foreach(_.findLatestOffsets())
      read(session, query)
    }
  }
}
