// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.output

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.SparkPlan

import org.apache.spark.sql.changelog.execution.PassesRows

/**
 * Executes a [[org.apache.spark.sql.changelog.plans.ChangelogDrain]]: what its consumer has not read
 * is read when the task ends, unless it fails.
 */
case class ChangelogDrainExec(child: SparkPlan) extends PassesRows {

  override protected def doExecute(): RDD[InternalRow] =
    child.execute().mapPartitionsInternal { rows =>
      // registered after those of the operators below, which clean up, and so called before them
      TaskContext.get().addTaskCompletionListener[Unit] { context =>
        if (!context.isFailed() && !context.isInterrupted()) rows.foreach(_ => ())
      }
      rows
    }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogDrainExec =
    copy(child = newChild)
}
