// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.microbatch

import java.util.UUID

import org.apache.hadoop.fs.Path

import org.apache.spark.internal.config.{CORES_MAX, EXECUTOR_CORES, EXECUTOR_INSTANCES}
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  StateStoreWriter, StatefulOperatorStateInfo
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.util.Utils
import org.apache.spark.{SparkContext, SparkException}

import org.apache.spark.sql.changelog.compat.{RunningStream, StreamTime}
import org.apache.spark.sql.changelog.config.ChangelogConf

/**
 * Provides an operator's state location while the operator's batch is planned, and the batch's times when the
 * batch runs.
 *
 * Spark fills in this information for its own stateful operators in a preparation rule that knows only Spark's
 * node classes. Changelog operators are therefore created with it. The stream's thread carries the query's id,
 * and the query knows the batch being planned (see [[RunningStream]]).
 */
object AssignStateInfo {

  /** Returns the state of operator `operatorId`, or a placeholder outside a running query. */
  def apply(session: SparkSession, operatorId: Long): StatefulOperatorStateInfo =
    RunningStream(session) match {
      case Some(stream) => stream.stateInfo(operatorId, numPartitions(session))
      case None =>
        val partitions = numPartitions(session)
        StatefulOperatorStateInfo("<unknown>", new UUID(0, 0), operatorId, 0, partitions)
    }

  /** Returns the number of partitions of the running query's operators, or of a query started now. */
  def numPartitions(session: SparkSession): Int = RunningStream(session) match {
    case Some(stream) =>
      // a query started before this setting existed has Spark's number
      val chosen = session.sessionState.conf.getConf(ChangelogConf.STATE_PARTITIONS)
      chosen.getOrElse(stream.numStateStores)
    case None => StatePartitions(session)
  }

  /**
   * Returns the state of an operator whose rows are placed by the columns `placedBy`. Without columns there is
   * a single partition, because Spark's commit fails without the stores of partitions not opened by a task.
   */
  def placed(
      state: StatefulOperatorStateInfo,
      placedBy: Seq[Expression]): StatefulOperatorStateInfo =
    if (placedBy.isEmpty) state.copy(numPartitions = 1) else state

  /** Returns whether the planned batch is the first; true outside a running query. */
  def isFirstBatch(session: SparkSession): Boolean =
    RunningStream(session).forall(_.batchId == 0)

  /** Returns the planned batch if it is the first batch of a run. */
  def firstOfRun(session: SparkSession): Option[PlannedBatch] =
    RunningStream(session).filter(_.isFirstOfRun).map { stream =>
      PlannedBatch(stream.query, stream.checkpoint, stream.batchId, stream.isRerun)
    }

  /** Returns the query running in this thread, with ids and names of operators in the order of progress reports. */
  def runningQuery(session: SparkSession): Option[(StreamingQuery, Seq[(Long, String)])] =
    RunningStream(session).map(running => (running.handle, operators(running)))

  private def operators(running: RunningStream): Seq[(Long, String)] =
    running.executedPlan.collect { case operator: StateStoreWriter =>
      operator.getStateInfo.operatorId -> operator.shortName
    }

  /** Fails if two operators of the batch, including Spark's own, share a state location. */
  def checkIds(session: SparkSession): Unit = RunningStream(session).foreach { running =>
    val ids = operators(running)
    ids.groupMap(_._1)(_._2).collectFirst { case (id, Seq(first, second, _*)) =>
      throw SparkException.internalError(s"Operators $first and $second share the id $id")
    }
  }

  /** Returns the query id and the planned batch; empty outside a running query. */
  def batch(session: SparkSession): Option[(String, Long)] =
    RunningStream(session).map { stream =>
      (RunningStream.queryId(session.sparkContext), stream.batchId)
    }

  /**
   * Returns the times of the running batch for an operator. Called on the driver.
   *
   * @param inputWatermark
   *   returns the watermark of the operator's input, in ms, for the query's watermark
   */
  def time(session: SparkSession, inputWatermark: Long => Option[Long]): BatchTime =
    RunningStream(session) match {
      case Some(stream) =>
        val (batch, previous) = (stream.time, stream.previousTime)
        // 0 means no watermark yet
        def known(watermark: Long) = inputWatermark(watermark).filter(_ > 0)
        BatchTime(
          previous.flatMap(batch => known(batch.watermark)),
          known(batch.watermark),
          batch.timestamp,
          previous.map(_.timestamp).getOrElse(0L))
      case None => throw SparkException.internalError("An operator with state runs in no query")
    }

  /** Returns the start time of the running batch, in ms since 1970. Called on the driver. */
  def timestamp(session: SparkSession): Long = RunningStream(session) match {
    case Some(stream) => stream.time.timestamp
    case None => throw SparkException.internalError("An operator with state runs in no query")
  }

  /** Returns the start time of the next batch, in ms since 1970. */
  def nextTimestamp(session: SparkSession): Long =
    nextBatch(session).map(_.timestamp).getOrElse(0L)

  /** Returns the watermark of the next batch, 0 without a watermark. */
  def nextWatermark(session: SparkSession): Long =
    nextBatch(session).map(_.watermark).getOrElse(0L)

  private def nextBatch(session: SparkSession): Option[StreamTime] =
    RunningStream(session).map(_.nextTime)

  /** Runs `body` as if no query ran in this thread. */
  def outsideOfQuery[T](session: SparkSession)(body: => T): T =
    RunningStream.outside(session.sparkContext)(body)
}

/**
 * A batch being planned.
 *
 * @param query
 *   the whole analyzed query
 * @param checkpoint
 *   the folder with the offset log
 * @param isRerun
 *   whether an earlier run began the batch and did not finish it
 */
private[changelog] final case class PlannedBatch(
    query: LogicalPlan,
    checkpoint: Path,
    batchId: Long,
    isRerun: Boolean)

/**
 * The times of a batch for an operator.
 *
 * @param lateWatermark
 *   the watermark of the previous batch, in ms; empty without a watermark
 * @param evictionWatermark
 *   the watermark of this batch, in ms; empty without a watermark
 * @param timestamp
 *   the start time of the batch, in ms since 1970; unchanged in a rerun
 * @param previousTimestamp
 *   the start time of the previous batch
 */
final case class BatchTime(
    lateWatermark: Option[Long],
    evictionWatermark: Option[Long],
    timestamp: Long,
    previousTimestamp: Long) {

  /** The watermark of the batch, in ms; empty if the watermark has not moved since the previous batch. */
  def moved: Option[Long] = BatchTime.moved(lateWatermark, evictionWatermark)
}

object BatchTime {
  private[changelog] def moved(late: Option[Long], eviction: Option[Long]): Option[Long] =
    eviction.filter(_ > late.getOrElse(0L))
}

/**
 * The salts to divide a single task's rows among several tasks: a salt per task. Empty for a single
 * partition.
 *
 * Rows are shuffled by a hash of their salt. The salts are not consecutive numbers, but chosen such that each
 * hashes to another partition. Salts 0 to 3 would leave half of four partitions empty.
 */
private[changelog] object SpreadingSalts {

  /** Returns the recorded salts, or the salts of a query that starts now. */
  def apply(session: SparkSession): Seq[Int] = {
    val conf = session.sessionState.conf
    conf.getConf(ChangelogConf.SPREADING_SALTS) match {
      case Some(begun) => begun.split(',').toSeq.filter(_.nonEmpty).map(_.toInt)
      case None =>
        among(AssignStateInfo.numPartitions(session), conf.getConf(ChangelogConf.SKEW_WAYS))
    }
  }

  /** Returns the salts in their recorded form. */
  def text(session: SparkSession): String = apply(session).mkString(",")

  private[microbatch] def among(partitions: Int, ways: Int): Seq[Int] =
    if (partitions == 1) Nil
    else {
      val first = Iterator.from(0).distinctBy(partitionOf(_, partitions))
      first.take(math.min(partitions, ways)).toSeq
    }

  private def partitionOf(salt: Int, partitions: Int): Any =
    HashPartitioning(Seq(Literal(salt)), partitions).partitionIdExpression.eval()
}

/**
 * The number of partitions of a query that starts now.
 *
 * Spark's default of 200 is meant for large shuffles. Each batch runs a task per partition, however little has
 * changed. The default here is therefore the number of cores, if the user has set no number. Spark's number
 * applies if the number of cores is unknown or changes.
 */
private[changelog] object StatePartitions {

  def apply(session: SparkSession): Int = {
    val conf = session.sessionState.conf
    conf
      .getConf(ChangelogConf.STATE_PARTITIONS)
      .orElse(byCores(session))
      .getOrElse(conf.numShufflePartitions)
  }

  /** Returns the number that suits the application's cores; empty if the user has set a number. */
  def byCores(session: SparkSession): Option[Int] = {
    val conf = session.sessionState.conf
    val isChosen = Seq(ChangelogConf.STATE_PARTITIONS, SQLConf.SHUFFLE_PARTITIONS)
      .exists(entry => conf.contains(entry.key))
    if (isChosen) None
    else cores(session.sparkContext).map(math.min(conf.numShufflePartitions, _))
  }

  private def cores(context: SparkContext): Option[Int] = {
    val conf = context.conf
    if (context.isLocal) Some(context.defaultParallelism)
    else if (Utils.isDynamicAllocationEnabled(conf)) None
    else
      conf.get(CORES_MAX).orElse {
        conf.get(EXECUTOR_INSTANCES).map(_ * conf.get(EXECUTOR_CORES))
      }
  }
}
