// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.microbatch

import java.util.UUID

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  StateStoreWriter,
  StatefulOperatorStateInfo
}
import org.apache.spark.sql.streaming.StreamingQuery

import org.apache.spark.sql.changelog.compat.{RunningStream, StreamTime}
import org.apache.spark.sql.changelog.config.ChangelogConf

/**
 * Finds where an operator's state lives, while its query's batch is being planned, and what time
 * it is, when that batch runs.
 *
 * Spark gives its own stateful operators this information in a preparation rule that knows only
 * Spark's node classes, and needs it in the same rule. So ours are created with it: the stream's
 * thread carries the query's id, the query knows the batch it is planning (see [[RunningStream]]).
 */
object AssignStateInfo {

  /** The state of operator `operatorId`, or a placeholder outside a running query. */
  def apply(session: SparkSession, operatorId: Long): StatefulOperatorStateInfo =
    RunningStream(session) match {
      case Some(stream) => stream.stateInfo(operatorId, numPartitions(session))
      case None =>
        val partitions = numPartitions(session)
        StatefulOperatorStateInfo("<unknown>", new UUID(0, 0), operatorId, 0, partitions)
    }

  /** How many partitions the query's operators have, or those of one that is started now. */
  def numPartitions(session: SparkSession): Int = RunningStream(session) match {
    case Some(stream) =>
      // a query that was begun by a version without this setting has Spark's number
      val chosen = session.sessionState.conf.getConf(ChangelogConf.STATE_PARTITIONS)
      chosen.getOrElse(stream.numStateStores)
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
    RunningStream(session).forall(_.batchId == 0)

  /** The batch with which a run of a query begins, if that is being planned. */
  def firstOfRun(session: SparkSession): Option[PlannedBatch] =
    RunningStream(session).filter(_.isFirstOfRun).map { stream =>
      PlannedBatch(stream.query, stream.checkpoint, stream.batchId)
    }

  /** The query that runs in this thread, with ids and names of its operators as progress lists them. */
  def runningQuery(session: SparkSession): Option[(StreamingQuery, Seq[(Long, String)])] =
    RunningStream(session).map(running => (running.handle, operators(running)))

  private def operators(running: RunningStream): Seq[(Long, String)] =
    running.executedPlan.collect { case operator: StateStoreWriter =>
      operator.getStateInfo.operatorId -> operator.shortName
    }

  /** Fails if two operators of the batch keep their state in one place, Spark's own included. */
  def checkIds(session: SparkSession): Unit = RunningStream(session).foreach { running =>
    val ids = operators(running)
    ids.groupMap(_._1)(_._2).collectFirst { case (id, Seq(first, second, _*)) =>
      throw SparkException.internalError(s"Operators $first and $second share the id $id")
    }
  }

  /** The query and the batch being planned; none outside a running query. */
  def batch(session: SparkSession): Option[(String, Long)] =
    RunningStream(session).map { stream =>
      (RunningStream.queryId(session.sparkContext), stream.batchId)
    }

  /**
   * What time it is for an operator in the batch that runs. Called on the driver.
   *
   * @param inputWatermark
   *   that of what the operator reads, in ms, by that of the query
   */
  def time(session: SparkSession, inputWatermark: Long => Option[Long]): BatchTime =
    RunningStream(session) match {
      case Some(stream) =>
        val (batch, previous) = (stream.time, stream.previousTime)
        // 0 stands for no watermark yet
        def known(watermark: Long) = inputWatermark(watermark).filter(_ > 0)
        BatchTime(
          previous.flatMap(batch => known(batch.watermark)),
          known(batch.watermark),
          batch.timestamp,
          previous.map(_.timestamp).getOrElse(0L))
      case None => throw SparkException.internalError("An operator with state runs in no query")
    }

  /** When the batch that runs was begun, in ms since 1970. Called on the driver. */
  def timestamp(session: SparkSession): Long = RunningStream(session) match {
    case Some(stream) => stream.time.timestamp
    case None => throw SparkException.internalError("An operator with state runs in no query")
  }

  /** When the next batch would be begun, in ms since 1970. */
  def nextTimestamp(session: SparkSession): Long =
    nextBatch(session).map(_.timestamp).getOrElse(0L)

  /** The watermark the next batch would have, 0 for none yet. */
  def nextWatermark(session: SparkSession): Long =
    nextBatch(session).map(_.watermark).getOrElse(0L)

  private def nextBatch(session: SparkSession): Option[StreamTime] =
    RunningStream(session).map(_.nextTime)

  /** Does something as if no query ran in this thread. */
  def outsideOfQuery[T](session: SparkSession)(body: => T): T =
    RunningStream.outside(session.sparkContext)(body)
}
