// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable

import org.apache.spark.ExceptionFailure
import org.apache.spark.scheduler.{
  SparkListener, SparkListenerStageCompleted, SparkListenerTaskEnd
}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.util.TaskCompletionListenerException

/**
 * Notes tasks that fail though [[FailingTasks]] has not told them to, where their next attempt hides
 * it. A stage that fails with them says so itself.
 */
class TaskFailures(spark: SparkSession) {
  private val failed = mutable.Map.empty[Int, Seq[ExceptionFailure]].withDefaultValue(Nil)
  private val hidden = mutable.ArrayBuffer.empty[ExceptionFailure]

  spark.sparkContext.addSparkListener(new SparkListener {
    override def onTaskEnd(task: SparkListenerTaskEnd): Unit = task.reason match {
      case failure: ExceptionFailure if !isToldTo(failure) =>
        failed.synchronized(failed(task.stageId) :+= failure)
      case _ =>
    }

    override def onStageCompleted(stage: SparkListenerStageCompleted): Unit =
      failed.synchronized {
        val failures = failed.remove(stage.stageInfo.stageId).toSeq.flatten
        if (stage.stageInfo.failureReason.isEmpty) hidden ++= failures
      }
  })

  /** Whether a task failed as it was told to, perhaps while a listener read the rest of its input. */
  private def isToldTo(failure: ExceptionFailure): Boolean = {
    val name = classOf[FailingTasks.ToldTo].getName
    failure.className == name ||
    failure.className == classOf[TaskCompletionListenerException].getName &&
    failure.fullStackTrace.contains(name)
  }

  /** Takes those that were noted since the last call. */
  def take(): Seq[ExceptionFailure] = {
    spark.sparkContext.listenerBus.waitUntilEmpty()
    failed.synchronized {
      val taken = hidden.toSeq
      hidden.clear()
      taken
    }
  }
}
