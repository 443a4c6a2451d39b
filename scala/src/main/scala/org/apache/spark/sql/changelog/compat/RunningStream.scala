// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.{
  BatchScanExec, StreamingDataSourceV2ScanRelation
}
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.runtime.{
  IncrementalExecution, MicroBatchExecution, MicroBatchExecutionContext, SingleBatchExecutor,
  StreamExecution, StreamingQueryWrapper
}
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1
import org.apache.spark.sql.execution.streaming.state.StateStoreCoordinatorRef
import org.apache.spark.sql.execution.streaming.{AvailableNowTrigger, OneTimeTrigger, Sink}
import org.apache.spark.sql.execution.{LogicalRDD, SparkPlan}
import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery, Trigger}
import org.apache.spark.sql.{DataFrame => AnyDataFrame}
import org.apache.spark.{SparkContext, TaskContext}

/** The query running in this thread, with its planned or running batch. */
final class RunningStream private (stream: StreamExecution, execution: IncrementalExecution) {

  /** The query's public handle. */
  def handle: StreamingQuery = stream

  /** The whole analyzed query. */
  def query: LogicalPlan = stream.analyzedPlan

  /** The folder with the offset log. */
  def checkpoint: Path = new Path(stream.resolvedCheckpointRoot)

  def batchId: Long = execution.currentBatchId

  /** Whether the batch is the first of this run of the query. */
  def isFirstOfRun: Boolean = execution.isFirstBatch

  /** Whether an earlier run began the batch and did not finish it. */
  def isRerun: Boolean =
    isFirstOfRun && stream.getLatestExecutionContext().getDuration("walCommit").isEmpty

  /** Whether the query ends without being stopped. */
  def endsByItself: Boolean = Set[Trigger](OneTimeTrigger, AvailableNowTrigger)(stream.trigger)

  /** Lets the sources look up their latest offsets, in a batch whose offsets were known before this run. */
  def findLatestOffsets(): Unit = LatestOffsets.find(stream.availableOffsets)

  /** The number of state partitions of Spark's own operators. */
  def numStateStores: Int = execution.numStateStores

  /** Returns the state location of an operator. */
  def stateInfo(operatorId: Long, numPartitions: Int): StatefulOperatorStateInfo =
    StatefulOperatorStateInfo(
      execution.checkpointLocation,
      execution.runId,
      operatorId,
      execution.currentBatchId,
      numPartitions,
      execution.stateSchemaMetadatas.get(operatorId),
      execution.currentStateStoreCkptId.get(operatorId))

  def executedPlan: SparkPlan = execution.executedPlan

  /** The times of the batch. */
  def time: StreamTime = RunningStream.timeOf(execution.offsetSeqMetadata)

  /** The times of the previous batch, if any. */
  def previousTime: Option[StreamTime] =
    execution.prevOffsetSeqMetadata.map(RunningStream.timeOf)

  /** The times of the next batch. */
  def nextTime: StreamTime =
    RunningStream.timeOf(stream.getLatestExecutionContext().offsetSeqMetadata)
}

/**
 * The times of a batch.
 *
 * @param timestamp
 *   the start of the batch, in ms since 1970
 * @param watermark
 *   in ms since 1970, 0 without a watermark
 */
final case class StreamTime(timestamp: Long, watermark: Long)

object RunningStream extends AdaptiveSparkPlanHelper {

  /**
   * Returns the query running in this thread; empty outside a running query. Spark stores the query's id in the
   * thread.
   */
  def apply(session: SparkSession): Option[RunningStream] = for {
    id <- Option(queryId(session.sparkContext))
    stream <- Option(session.sharedState.activeStreamingQueries.get(UUID.fromString(id)))
    execution <- Option(stream.lastExecution)
  } yield new RunningStream(stream, execution)

  /** Returns the id of the query running in this thread, or null. */
  def queryId(context: SparkContext): String =
    context.getLocalProperty(StreamExecution.QUERY_ID_KEY)

  /** Returns the id of a task's query, or null. */
  def queryId(task: TaskContext): String = task.getLocalProperty(StreamExecution.QUERY_ID_KEY)

  /** Returns the number of a task's batch, or null. */
  def batchId(task: TaskContext): String =
    task.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY)

  /** Returns the id of the query run in Hadoop's settings. */
  def runId(hadoopConf: Configuration): Option[UUID] =
    Option(hadoopConf.get(StreamExecution.RUN_ID_KEY)).map(UUID.fromString)

  /** Runs `body` as if no query ran in this thread. */
  def outside[T](context: SparkContext)(body: => T): T = {
    val query = queryId(context)
    context.setLocalProperty(StreamExecution.QUERY_ID_KEY, null)
    try body
    finally context.setLocalProperty(StreamExecution.QUERY_ID_KEY, query)
  }

  /**
   * Returns the coordinator, which knows the executors of state stores. `session.streams` also has a
   * coordinator, but creates a listener bus for each run's session that is never removed.
   */
  def stateStoreCoordinator(context: SparkContext): StateStoreCoordinatorRef =
    StateStoreCoordinatorRef.forExecutor(context.env)

  /**
   * Returns the rows that the last batch scanned in tables of catalogs. Spark may not count these
   * rows as input.
   */
  def rowsScanned(query: StreamingQuery): Long = query match {
    case wrapper: StreamingQueryWrapper =>
      val plans = Option(wrapper.streamingQuery.lastExecution).map(_.executedPlan).toSeq
      val scans = plans.flatMap(collect(_) { case scan: BatchScanExec => scan })
      scans.map(_.metrics("numOutputRows").value).sum
    case _ => 0
  }

  /** Returns the sink of a query, if Spark exposes the sink. */
  def sinkOf(query: StreamingQuery): Option[Table] = query match {
    case wrapper: StreamingQueryWrapper => Some(wrapper.streamingQuery.sink)
    case _ => None
  }

  /**
   * Returns whether an ended query with the trigger `AvailableNow` has read its sources' data completely, as of
   * the start of the query. False for a stopped query, and for a query that [[runsOneBatch]] if that batch was
   * begun by an earlier run.
   */
  def hasReadAll(query: StreamingQuery): Boolean =
    if (runsOneBatch(query)) {
      // Spark asks sources for offsets only in a batch that was not begun before
      Option(query.lastProgress).exists { batch =>
        Seq("latestOffset", "getOffset").exists(batch.durationMs.containsKey)
      }
    } else
      streamOf(query).map(_.getLatestExecutionContext()).forall {
        case last: MicroBatchExecutionContext => !last.isCurrentBatchConstructed
        case _ => true
      }

  /**
   * Returns whether Spark runs a single batch of the query, because a source does not support the trigger
   * `AvailableNow`.
   */
  def runsOneBatch(query: StreamingQuery): Boolean =
    streamOf(query).exists(_.triggerExecutor.isInstanceOf[SingleBatchExecutor])

  private def streamOf(query: StreamingQuery): Option[MicroBatchExecution] = query match {
    case wrapper: StreamingQueryWrapper =>
      Some(wrapper.streamingQuery).collect { case stream: MicroBatchExecution => stream }
    case _ => None
  }

  private def timeOf(batch: LoggedOffsets.Metadata): StreamTime =
    StreamTime(batch.batchTimestampMs, batch.batchWatermarkMs)
}

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
