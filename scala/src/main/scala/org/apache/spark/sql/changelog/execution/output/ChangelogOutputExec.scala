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

import org.apache.spark.sql.changelog.execution.PassesRows
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
import org.apache.spark.sql.changelog.plans.{ExplainNode, Explanation, WatchedChanges}
import org.apache.spark.sql.changelog.sources.records.DeadLetters
import org.apache.spark.sql.changelog.status.RunningPlans

/**
 * Marks the root of a changelog query, for EXPLAIN; the rows pass through untouched.
 *
 * @param letters
 *   where sources below keep records that can't be read
 */
case class ChangelogOutputExec(
    explanation: Explanation,
    letters: Seq[DeadLetters],
    child: SparkPlan)
    extends PassesRows {

  def explained: ExplainNode = explanation.tree

  override def simpleString(maxFields: Int): String = s"ChangelogOutput ${explanation.mode}"

  /**
   * Without one Spark leaves adaptive execution off, which plans this node anew when the tasks below an
   * exchange are done.
   */
  override def logicalLink: Option[LogicalPlan] = if (letters.isEmpty) super.logicalLink else None

  /** A plan is prepared from its root down, and all of it before it runs. */
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
 * Warns of a query for which Spark generates more classes than it keeps.
 *
 * Spark compiles code for each batch, unless it still has what it compiled for the one before. It
 * keeps the classes used last, as many as `spark.sql.codegen.cache.maxEntries` says. A query that
 * has more compiles all of them again in every batch, which takes longer than a few rows do.
 */
private[output] object GeneratedClasses extends Logging {

  /**
   * About how many classes are generated for a plan: hardly fewer were counted for aggregates, joins
   * and ranks, alone and in one query.
   */
  def countOf(plan: SparkPlan): Int = 10 + 2 * plan.collect { case node => node }.size

  /** The warning if only `kept` generated classes are cached. */
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
