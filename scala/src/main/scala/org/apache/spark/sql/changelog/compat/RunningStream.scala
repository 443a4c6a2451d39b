// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.runtime.{
  IncrementalExecution,
  MicroBatchExecution,
  MicroBatchExecutionContext,
  SingleBatchExecutor,
  StreamExecution,
  StreamingQueryWrapper
}
import org.apache.spark.sql.execution.streaming.state.StateStoreCoordinatorRef
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.{SparkContext, TaskContext}

/** The query that runs in this thread, and the batch of it that is planned or run. */
final class RunningStream private (stream: StreamExecution, execution: IncrementalExecution) {

  /** The query, as users know it. */
  def handle: StreamingQuery = stream

  /** The whole query, as it has been analyzed. */
  def query: LogicalPlan = stream.analyzedPlan

  /** The folder that holds the offset log. */
  def checkpoint: Path = new Path(stream.resolvedCheckpointRoot)

  def batchId: Long = execution.currentBatchId

  /** Whether it is the first batch of this run of the query. */
  def isFirstOfRun: Boolean = execution.isFirstBatch

  /** Lets sources of a batch whose offsets were known before this run find out what more there is. */
  def findLatestOffsets(): Unit = LatestOffsets.find(stream.availableOffsets)

  /** In how many partitions Spark's own operators keep their state. */
  def numStateStores: Int = execution.numStateStores

  /** Where the state of an operator is. */
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

  /** The time of the batch. */
  def time: StreamTime = RunningStream.timeOf(execution.offsetSeqMetadata)

  /** That of the batch before, if there was one. */
  def previousTime: Option[StreamTime] =
    execution.prevOffsetSeqMetadata.map(RunningStream.timeOf)

  /** That of the batch that comes next. */
  def nextTime: StreamTime =
    RunningStream.timeOf(stream.getLatestExecutionContext().offsetSeqMetadata)
}

/**
 * The time of a batch.
 *
 * @param timestamp
 *   when it was begun, in ms since 1970
 * @param watermark
 *   in ms since 1970, 0 for none yet
 */
final case class StreamTime(timestamp: Long, watermark: Long)

object RunningStream {

  /** None outside a running query. Spark tells a stream's thread which query it belongs to. */
  def apply(session: SparkSession): Option[RunningStream] = for {
    id <- Option(queryId(session.sparkContext))
    stream <- Option(session.sharedState.activeStreamingQueries.get(UUID.fromString(id)))
    execution <- Option(stream.lastExecution)
  } yield new RunningStream(stream, execution)

  /** The id of the query that runs in this thread, or null. */
  def queryId(context: SparkContext): String =
    context.getLocalProperty(StreamExecution.QUERY_ID_KEY)

  /** The id of the query whose task this is, or null. */
  def queryId(task: TaskContext): String = task.getLocalProperty(StreamExecution.QUERY_ID_KEY)

  /** The number of the batch whose task this is, or null. */
  def batchId(task: TaskContext): String =
    task.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY)

  /** The id of the run of a query to which Hadoop's settings belong. */
  def runId(hadoopConf: Configuration): Option[UUID] =
    Option(hadoopConf.get(StreamExecution.RUN_ID_KEY)).map(UUID.fromString)

  /** Does something as if no query ran in this thread. */
  def outside[T](context: SparkContext)(body: => T): T = {
    val query = queryId(context)
    context.setLocalProperty(StreamExecution.QUERY_ID_KEY, null)
    try body
    finally context.setLocalProperty(StreamExecution.QUERY_ID_KEY, query)
  }

  /**
   * Who knows where state stores are. `session.streams` does, too, but makes a bus of listeners for the session of
   * each run, which nobody removes.
   */
  def stateStoreCoordinator(context: SparkContext): StateStoreCoordinatorRef =
    StateStoreCoordinatorRef.forExecutor(context.env)

  /** The sink that a query writes to, where Spark tells. */
  def sinkOf(query: StreamingQuery): Option[Table] = query match {
    case wrapper: StreamingQueryWrapper => Some(wrapper.streamingQuery.sink)
    case _ => None
  }

  /**
   * Whether a query with the trigger `AvailableNow`, which has ended, has read all that its sources had when it
   * started. A query that was stopped has not. Neither has one that [[runsOneBatch]], if that batch was begun before.
   */
  def hasReadAll(query: StreamingQuery): Boolean =
    if (runsOneBatch(query)) {
      // Spark asks sources only for a batch that was not begun before
      Option(query.lastProgress).exists { batch =>
        Seq("latestOffset", "getOffset").exists(batch.durationMs.containsKey)
      }
    } else
      streamOf(query).map(_.getLatestExecutionContext()).forall {
        case last: MicroBatchExecutionContext => !last.isCurrentBatchConstructed
        case _ => true
      }

  /** Whether Spark runs a single batch of the query, since a source does not support the trigger `AvailableNow`. */
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
