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

/** Runs the one batch of a query that its checkpoint says was begun, to get at its plan. */
object OneBatch {

  /** Runs the batch that was begun, and no other. */
  val Only: Trigger = OneTimeTrigger

  /**
   * Runs the batch; `read` is called while it runs.
   *
   * @param query
   *   a streaming query
   * @param read
   *   given the session, and the query with what its sources have in that batch
   */
  def run(session: SparkSession, query: LogicalPlan, checkpoint: Path)(
      read: (SparkSession, LogicalPlan) => Unit): Unit = {
    // a session that has started no query, and has no listeners to hear of this one
    val own = session.cloneSession()
    new BorrowedListeners(own, own).run(
      own.sessionState.streamingQueryManager.startQuery(
        userSpecifiedName = None,
        userSpecifiedCheckpointLocation = Some(checkpoint.toString),
        df = Dataset.ofRows(own, query),
        extraOptions = Map.empty,
        sink = new PlanSink(read),
        outputMode = OutputMode.Append(),
        trigger = Only))
  }

  /** The plan of a batch as one that is no stream, as far as Spark's own sources go. */
  def atRest(session: SparkSession, plan: LogicalPlan): LogicalPlan = plan.transform {
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
