// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import java.util.{Collections, LinkedHashMap, Map => JMap, UUID}

import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.{ExpandExec, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.execution.ChangelogStateWriter

/**
 * Decides from batch to batch whether changes are combined by value before they are shuffled.
 *
 * Where values repeat, few rows are left of many changes. Where they don't, the hash map over
 * copies of each change costs as much as all else. Which it is shows in the counts of the last
 * batch that was combined; every sixteenth batch is, to look again. What the query gives is the
 * same either way, so nothing of this is in the checkpoint.
 */
private[aggregate] object ValueCombining {
  private val interval = 16L
  private val fewest = 10000L
  private val remembered = 1000

  /** What combining gave in one batch: its input and its output, once the batch has run. */
  private final case class Outcome(
      copies: SQLMetric,
      combined: SQLMetric,
      copiesPerChange: Int,
      worth: Int) {

    /** A change that isn't combined is one row in the shuffle, and is cheaper to make. */
    def pays: Boolean = {
      val changes = copies.value / copiesPerChange
      changes < fewest || combined.value < changes / 2 * worth
    }
  }

  private val outcomes: JMap[(UUID, Long), Outcome] =
    Collections.synchronizedMap(new LinkedHashMap[(UUID, Long), Outcome](16, 0.75f, true) {
      override def removeEldestEntry(eldest: JMap.Entry[(UUID, Long), Outcome]): Boolean =
        size > remembered
    })

  /** Whether the batch being planned combines the values of an operator's input. */
  def pays(state: StatefulOperatorStateInfo, conf: SQLConf): Boolean =
    conf.getConf(ChangelogConf.COMBINE_VALUES) match {
      case "always" => true
      case "never" => false
      case _ =>
        state.storeVersion % interval == 0 ||
        Option(outcomes.get(state.queryRunId -> state.operatorId)).forall(_.pays)
    }

  /**
   * Takes note of how `input` of an operator is combined, before the batch runs.
   *
   * @param worth
   *   how many combined rows cost the operator as much as a change that is not combined
   */
  def note(state: StatefulOperatorStateInfo, input: SparkPlan, worth: Int): Unit =
    outcomeOf(input, worth).foreach(outcomes.put(state.queryRunId -> state.operatorId, _))

  private def outcomeOf(plan: SparkPlan, worth: Int): Option[Outcome] = plan match {
    case _: ChangelogStateWriter => None
    case aggregate: BaseAggregateExec =>
      aggregate.child match {
        case expand: ExpandExec =>
          Some(
            Outcome(
              expand.metrics("numOutputRows"),
              aggregate.metrics("numOutputRows"),
              expand.projections.size,
              worth))
        case other => outcomeOf(other, worth)
      }
    case other => other.children.flatMap(outcomeOf(_, worth)).headOption
  }
}
