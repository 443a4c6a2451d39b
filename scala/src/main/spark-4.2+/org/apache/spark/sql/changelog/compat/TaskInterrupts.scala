// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.TaskContext
import org.apache.spark.util.TaskInterruptListener

/** Tells that a task is interrupted. */
private[compat] object TaskInterrupts {
  def listen(task: TaskContext)(onInterrupt: => Unit): Unit = {
    task.addTaskInterruptListener(new TaskInterruptListener {
      override def onTaskInterrupted(context: TaskContext, reason: String): Unit = onInterrupt
    })
    ()
  }
}
