// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable

import org.apache.spark.ExceptionFailure
import org.apache.spark.scheduler.{
  SparkListener, SparkListenerStageCompleted, SparkListenerTaskEnd
}
import org.apache.spark.sql.classic.SparkSession

/**
 * Notes tasks that fail though [[FailingTasks]] has not told them to, where their next attempt hides
 * it. A stage that fails with them says so itself.
 */
class TaskFailures(spark: SparkSession) {
  private val failed = mutable.Map.empty[Int, Seq[ExceptionFailure]].withDefaultValue(Nil)
  private val hidden = mutable.ArrayBuffer.empty[ExceptionFailure]

  spark.sparkContext.addSparkListener(new SparkListener {
    override def onTaskEnd(task: SparkListenerTaskEnd): Unit = task.reason match {
      case failure: ExceptionFailure
          if failure.className != classOf[FailingTasks.ToldTo].getName =>
        failed.synchronized(failed(task.stageId) :+= failure)
      case _ =>
    }

    override def onStageCompleted(stage: SparkListenerStageCompleted): Unit =
      failed.synchronized {
        val failures = failed.remove(stage.stageInfo.stageId).toSeq.flatten
        if (stage.stageInfo.failureReason.isEmpty) hidden ++= failures
      }
  })

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
