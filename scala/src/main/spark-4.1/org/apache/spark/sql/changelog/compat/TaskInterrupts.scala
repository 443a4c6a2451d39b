// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.util.concurrent.TimeUnit

import org.apache.spark.TaskContext
import org.apache.spark.util.ThreadUtils

/** Tells that a task is interrupted. This version does not say so itself: it is looked at every second. */
private[compat] object TaskInterrupts {
  def listen(task: TaskContext)(onInterrupt: => Unit): Unit = {
    val looking = ThreadUtils.newDaemonSingleThreadScheduledExecutor("changelog-task-interrupts")
    looking.scheduleWithFixedDelay(
      () =>
        if (task.isInterrupted()) {
          looking.shutdown()
          onInterrupt
        },
      1,
      1,
      TimeUnit.SECONDS)
    task.addTaskCompletionListener[Unit] { _ =>
      looking.shutdownNow()
      ()
    }
    ()
  }
}
