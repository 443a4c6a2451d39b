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
  StateStoreWriter,
  StatefulOperatorStateInfo
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.util.Utils
import org.apache.spark.{SparkContext, SparkException}

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

/**
 * A batch that is being planned.
 *
 * @param query
 *   the whole query, as it has been analyzed
 * @param checkpoint
 *   the folder that holds the offset log
 */
private[changelog] final case class PlannedBatch(
    query: LogicalPlan,
    checkpoint: Path,
    batchId: Long)

/**
 * What time it is for one operator in one batch.
 *
 * @param lateWatermark
 *   the watermark of the batch before, in ms; none before there is one
 * @param overWatermark
 *   the watermark of this batch, in ms; none before there is one
 * @param timestamp
 *   when this batch was begun, in ms since 1970; the same if it is run again
 * @param previousTimestamp
 *   when the batch before was begun
 */
final case class BatchTime(
    lateWatermark: Option[Long],
    overWatermark: Option[Long],
    timestamp: Long,
    previousTimestamp: Long) {

  /** The watermark of this batch, in ms, if it is another than that of the batch before. */
  def moved: Option[Long] = BatchTime.moved(lateWatermark, overWatermark)
}

object BatchTime {
  private[changelog] def moved(late: Option[Long], over: Option[Long]): Option[Long] =
    over.filter(_ > late.getOrElse(0L))
}

/**
 * The salts among which a query divides rows that one task would have, one for each of as many tasks as
 * work on them: none if there is one partition only.
 *
 * Rows are shuffled by a hash of their salt. So they are not just counted, but chosen such that each is in
 * another partition: 0 to 3 would leave half of four partitions empty.
 */
private[changelog] object SpreadingSalts {

  /** The recorded salts, or those for a query that starts. */
  def apply(session: SparkSession): Seq[Int] = {
    val conf = session.sessionState.conf
    conf.getConf(ChangelogConf.SPREADING_SALTS) match {
      case Some(begun) => begun.split(',').toSeq.filter(_.nonEmpty).map(_.toInt)
      case None =>
        among(AssignStateInfo.numPartitions(session), conf.getConf(ChangelogConf.SKEW_WAYS))
    }
  }

  /** As they are written down. */
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
 * How many partitions a query that is started now has.
 *
 * Spark's default of 200 is meant for large shuffles, and each batch runs a task for each of them, however
 * little has changed. So unless the user has chosen a number there are as many as tasks can run at
 * once; as many as Spark would have where nobody knows, or where executors come and go.
 */
private[changelog] object StatePartitions {

  def apply(session: SparkSession): Int = {
    val conf = session.sessionState.conf
    conf
      .getConf(ChangelogConf.STATE_PARTITIONS)
      .orElse(byCores(session))
      .getOrElse(conf.numShufflePartitions)
  }

  /** The number that suits the application's cores, where the user has chosen none. */
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
