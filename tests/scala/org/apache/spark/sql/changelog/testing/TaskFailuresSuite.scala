// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.{SparkException, TaskContext}

class TaskFailuresSuite extends AnyFunSuite with ChangelogSession {

  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = Map("spark.master" -> "local[2,3]"))

  test("tasks that fail are noted unless they were told to, though the next attempt does not") {
    val failures = new TaskFailures(spark)
    spark.sparkContext.parallelize(1 to 4, 4).foreach { number =>
      if (TaskContext.get().attemptNumber() == 0) number match {
        case 1 => throw new FailingTasks.ToldTo(1)
        case 4 =>
          TaskContext.get().addTaskCompletionListener[Unit](_ => throw new FailingTasks.ToldTo(4))
        case 2 => throw new IllegalStateException("of itself")
        case _ =>
      }
    }
    assert(failures.take().map(_.description) == Seq("of itself"))
    intercept[SparkException](
      spark.sparkContext
        .parallelize(1 to 2)
        .foreach(_ => throw new IllegalStateException("always")))
    assert(failures.take().isEmpty)
  }
}
