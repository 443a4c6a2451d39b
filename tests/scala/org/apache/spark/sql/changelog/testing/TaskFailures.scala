// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable

import org.apache.spark.ExceptionFailure
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.sql.classic.SparkSession

/**
 * Notes tasks that fail though [[FailingTasks]] has not told them to. Where tasks are tried again, the
 * next attempt may hide what was wrong with the first.
 */
class TaskFailures(spark: SparkSession) {
  private val noted = mutable.ArrayBuffer.empty[ExceptionFailure]

  spark.sparkContext.addSparkListener(new SparkListener {
    override def onTaskEnd(task: SparkListenerTaskEnd): Unit = task.reason match {
      case failure: ExceptionFailure
          if failure.className != classOf[FailingTasks.ToldTo].getName =>
        noted.synchronized(noted += failure)
      case _ =>
    }
  })

  /** Takes those since the last call. */
  def take(): Seq[ExceptionFailure] = {
    spark.sparkContext.listenerBus.waitUntilEmpty()
    noted.synchronized {
      val taken = noted.toSeq
      noted.clear()
      taken
    }
  }
}
