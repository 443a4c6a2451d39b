// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.output

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection}
import org.apache.spark.sql.execution.SparkPlan

import org.apache.spark.sql.changelog.execution.PassesRows
import org.apache.spark.sql.changelog.plans.WatchedChanges

/** Executes a [[org.apache.spark.sql.changelog.plans.WatchChanges]]. */
case class WatchChangesExec(
    watched: WatchedChanges,
    place: Int,
    columns: Seq[Attribute],
    child: SparkPlan)
    extends PassesRows {

  override def simpleString(maxFields: Int): String = s"WatchChanges $place"

  override protected def doExecute(): RDD[InternalRow] = {
    val noted = watched.begin(place, columns, sparkContext)
    // of this node tasks get no more
    val (wanted, all) = (columns, output)
    child.execute().mapPartitionsWithIndexInternal { (index, rows) =>
      val select = UnsafeProjection.create(wanted, all)
      val sent = mutable.ArrayBuffer.empty[InternalRow]
      TaskContext.get().addTaskCompletionListener[Unit](_ => noted.add(index -> sent.toSeq))
      rows.map { row =>
        sent += select(row).copy()
        row
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): WatchChangesExec =
    copy(child = newChild)
}
