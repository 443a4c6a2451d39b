// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.microbatch

import java.util.UUID

import org.apache.hadoop.fs.Path

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqMetadataBase
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  StateStoreWriter,
  StatefulOperatorStateInfo
}
import org.apache.spark.sql.execution.streaming.runtime.{IncrementalExecution, StreamExecution}

import org.apache.spark.sql.changelog.config.ChangelogConf

/**
 * Finds where an operator's state lives, while its query's batch is being planned, and what time
 * it is, when that batch runs.
 *
 * Spark gives its own stateful operators this information in a preparation rule that knows only
 * Spark's node classes, and needs it in the same rule. So ours are created with it: the stream's
 * thread carries the query's id, the query knows the batch it is planning. This object is the
 * only place that deals with `IncrementalExecution`.
 */
object AssignStateInfo {

  /** The state of operator `operatorId`, or a placeholder outside a running query. */
  def apply(session: SparkSession, operatorId: Long): StatefulOperatorStateInfo =
    planning(session) match {
      case Some(execution) =>
        StatefulOperatorStateInfo(
          execution.checkpointLocation,
          execution.runId,
          operatorId,
          execution.currentBatchId,
          numPartitions(session),
          execution.stateSchemaMetadatas.get(operatorId),
          execution.currentStateStoreCkptId.get(operatorId))
      case None =>
        val partitions = numPartitions(session)
        StatefulOperatorStateInfo("<unknown>", new UUID(0, 0), operatorId, 0, partitions)
    }

  /** How many partitions the query's operators have, or those of one that is started now. */
  def numPartitions(session: SparkSession): Int = planning(session) match {
    case Some(execution) =>
      // a query that was begun by a version without this setting has Spark's number
      val chosen = session.sessionState.conf.getConf(ChangelogConf.STATE_PARTITIONS)
      chosen.getOrElse(execution.numStateStores)
    case None => StatePartitions(session)
  }

  /**
   * The state of an operator whose rows are placed by some columns. Without any it is in one
   * partition: a store that is never opened would be missed when the batch is committed.
   */
  def placed(
      state: StatefulOperatorStateInfo,
      placedBy: Seq[Expression]): StatefulOperatorStateInfo =
    if (placedBy.isEmpty) state.copy(numPartitions = 1) else state

  /** Whether no batch came before the one being planned; so it is outside a running query. */
  def isFirstBatch(session: SparkSession): Boolean =
    planning(session).forall(_.currentBatchId == 0)

  /** The batch with which a run of a query begins, if that is being planned. */
  def firstOfRun(session: SparkSession): Option[PlannedBatch] =
    running(session).filter(_._2.isFirstBatch).map { case (stream, execution) =>
      val checkpoint = new Path(stream.resolvedCheckpointRoot)
      PlannedBatch(stream.analyzedPlan, checkpoint, execution.currentBatchId)
    }

  /** The query that runs in this thread, with ids and names of its operators as progress lists them. */
  def runningQuery(session: SparkSession): Option[(StreamExecution, Seq[(Long, String)])] =
    running(session).map { case (stream, execution) => (stream, operators(execution)) }

  private def operators(execution: IncrementalExecution): Seq[(Long, String)] =
    execution.executedPlan.collect { case operator: StateStoreWriter =>
      operator.getStateInfo.operatorId -> operator.shortName
    }

  /** Fails if two operators of the batch keep their state in one place, Spark's own included. */
  def checkIds(session: SparkSession): Unit = planning(session).foreach { execution =>
    val ids = operators(execution)
    ids.groupMap(_._1)(_._2).collectFirst { case (id, Seq(first, second, _*)) =>
      throw SparkException.internalError(s"Operators $first and $second share the id $id")
    }
  }

  /** The query and the batch being planned; none outside a running query. */
  def batch(session: SparkSession): Option[(String, Long)] =
    planning(session).map { execution =>
      (
        session.sparkContext.getLocalProperty(StreamExecution.QUERY_ID_KEY),
        execution.currentBatchId)
    }

  /**
   * What time it is for an operator in the batch that runs. Called on the driver.
   *
   * @param inputWatermark
   *   that of what the operator reads, in ms, by that of the query
   */
  def time(session: SparkSession, inputWatermark: Long => Option[Long]): BatchTime =
    planning(session) match {
      case Some(execution) =>
        val batch = execution.offsetSeqMetadata
        val previous = execution.prevOffsetSeqMetadata
        // 0 stands for no watermark yet
        def known(watermark: Long) = inputWatermark(watermark).filter(_ > 0)
        BatchTime(
          previous.flatMap(batch => known(batch.batchWatermarkMs)),
          known(batch.batchWatermarkMs),
          batch.batchTimestampMs,
          previous.map(_.batchTimestampMs).getOrElse(0L))
      case None => throw SparkException.internalError("An operator with state runs in no query")
    }

  /** When the batch that runs was begun, in ms since 1970. Called on the driver. */
  def timestamp(session: SparkSession): Long = planning(session) match {
    case Some(execution) => execution.offsetSeqMetadata.batchTimestampMs
    case None => throw SparkException.internalError("An operator with state runs in no query")
  }

  /** When the next batch would be begun, in ms since 1970. */
  def nextTimestamp(session: SparkSession): Long =
    nextBatch(session).map(_.batchTimestampMs).getOrElse(0L)

  /** The watermark the next batch would have, 0 for none yet. */
  def nextWatermark(session: SparkSession): Long =
    nextBatch(session).map(_.batchWatermarkMs).getOrElse(0L)

  private def nextBatch(session: SparkSession): Option[OffsetSeqMetadataBase] =
    running(session).map(_._1.getLatestExecutionContext().offsetSeqMetadata)

  /** Does something as if no query ran in this thread. */
  def outsideOfQuery[T](session: SparkSession)(body: => T): T = {
    val context = session.sparkContext
    val query = context.getLocalProperty(StreamExecution.QUERY_ID_KEY)
    context.setLocalProperty(StreamExecution.QUERY_ID_KEY, null)
    try body
    finally context.setLocalProperty(StreamExecution.QUERY_ID_KEY, query)
  }

  private def planning(session: SparkSession): Option[IncrementalExecution] =
    running(session).map(_._2)

  private def running(session: SparkSession): Option[(StreamExecution, IncrementalExecution)] =
    for {
      id <- Option(session.sparkContext.getLocalProperty(StreamExecution.QUERY_ID_KEY))
      stream <- Option(session.sharedState.activeStreamingQueries.get(UUID.fromString(id)))
      execution <- Option(stream.lastExecution)
    } yield (stream, execution)
}
