// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import java.nio.file.StandardOpenOption.{APPEND, CREATE}
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.apache.spark.scheduler.{
  SparkListener, SparkListenerExecutorRemoved, SparkListenerTaskEnd
}
import org.apache.spark.{Success, TaskKilled}

/** Notes failed tasks and lost executors of a process in a file, a line each, which outlives it. */
class Troubles(home: Path) extends SparkListener {
  import Troubles._

  override def onTaskEnd(task: SparkListenerTaskEnd): Unit = task.reason match {
    // killed is what another attempt was faster than
    case Success | _: TaskKilled =>
    case _ => note(FailedTask)
  }

  override def onExecutorRemoved(executor: SparkListenerExecutorRemoved): Unit =
    note(LostExecutor)

  private def note(trouble: String): Unit = {
    Files.writeString(file(home), s"$trouble\n", CREATE, APPEND)
    ()
  }
}

object Troubles {
  private val FailedTask = "failed task"
  private val LostExecutor = "lost executor"

  private def file(home: Path): Path = home.resolve("troubles")

  /** What all processes have noted. */
  def figures(home: Path): RunFigures =
    if (!Files.exists(file(home))) RunFigures()
    else {
      val noted = Files.readAllLines(file(home)).asScala
      RunFigures(
        failedTasks = noted.count(_ == FailedTask),
        lostExecutors = noted.count(_ == LostExecutor))
    }
}
