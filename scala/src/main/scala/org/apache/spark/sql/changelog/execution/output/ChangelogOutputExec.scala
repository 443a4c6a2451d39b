// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.output

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.StaticSQLConf.CODEGEN_CACHE_MAX_ENTRIES

import org.apache.spark.sql.changelog.execution.{PassesRows, RunningPlans}
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
import org.apache.spark.sql.changelog.plans.{ExplainNode, Explanation, WatchedChanges}
import org.apache.spark.sql.changelog.sources.records.DeadLetters

/**
 * Marks the root of a changelog query, for EXPLAIN. The rows pass unchanged.
 *
 * @param letters
 *   the dead-letter directories of the sources below
 */
case class ChangelogOutputExec(
    explanation: Explanation,
    letters: Seq[DeadLetters],
    child: SparkPlan)
    extends PassesRows {

  def explained: ExplainNode = explanation.tree

  override def simpleString(maxFields: Int): String = s"ChangelogOutput ${explanation.mode}"

  /**
   * None with dead letters, so that Spark leaves adaptive execution off. Adaptive execution would plan and
   * prepare this node again after the tasks below an exchange have run.
   */
  override def logicalLink: Option[LogicalPlan] = if (letters.isEmpty) super.logicalLink else None

  /** Prepares the dead-letter directories. Spark prepares a plan from the root down, before the plan runs. */
  override protected def doPrepare(): Unit =
    AssignStateInfo.batch(castToImpl(session)).foreach { case (query, batch) =>
      DeadLetters.begin(letters, query, batch)
    }

  override protected def doExecute(): RDD[InternalRow] = {
    val started = castToImpl(session)
    AssignStateInfo.checkIds(started)
    if (AssignStateInfo.firstOfRun(started).isDefined) {
      GeneratedClasses.warn(this)
      AssignStateInfo.runningQuery(started).foreach { case (query, operators) =>
        RunningPlans.note(query, explained, operators)
      }
    }
    child.execute()
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogOutputExec =
    copy(child = newChild)
}

/**
 * Warns of a query with more generated classes than Spark caches.
 *
 * Spark compiles code for each batch, unless the compiled class is still cached. The cache holds the classes
 * used last, up to `spark.sql.codegen.cache.maxEntries`. A query with more classes compiles every class again
 * in each batch. That takes longer than processing a few rows.
 */
private[output] object GeneratedClasses extends Logging {

  /**
   * Estimates the number of classes generated for a plan. Measured numbers for aggregates, joins and ranks,
   * alone and in a query, are hardly lower.
   */
  def countOf(plan: SparkPlan): Int = 10 + 2 * plan.collect { case node => node }.size

  /** Returns a warning if the cache, with room for `kept` classes, is too small for the plan. */
  def warning(plan: SparkPlan, kept: Int): Option[String] = {
    val name = CODEGEN_CACHE_MAX_ENTRIES.key
    Option.when(countOf(plan) > kept)(
      s"A query has about ${countOf(plan)} generated classes, but $name keeps $kept, so that each batch " +
        s"compiles them again. Start the application with $name=5000.")
  }

  def warn(plan: SparkPlan): Unit =
    warning(plan, plan.conf.codegenCacheMaxEntries).foreach(text => logWarning(text))
}

/**
 * Executes a [[org.apache.spark.sql.changelog.plans.ChangelogDrain]]: reads the rest of the rows when the task
 * ends, unless the task failed.
 */
case class ChangelogDrainExec(child: SparkPlan) extends PassesRows {

  override protected def doExecute(): RDD[InternalRow] =
    child.execute().mapPartitionsInternal { rows =>
      // registered after the listeners of the operators below, which clean up, and therefore called before them
      TaskContext.get().addTaskCompletionListener[Unit] { context =>
        if (!context.isFailed() && !context.isInterrupted()) rows.foreach(_ => ())
      }
      rows
    }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogDrainExec =
    copy(child = newChild)
}

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
    // local values, so that tasks do not serialize this node
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
