// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.output

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.SparkPlan

import org.apache.spark.sql.changelog.execution.PassesRows
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
import org.apache.spark.sql.changelog.plans.{ExplainNode, Explanation}
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
