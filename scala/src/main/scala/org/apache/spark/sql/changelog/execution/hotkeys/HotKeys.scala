// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.hotkeys

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec

import org.apache.spark.sql.changelog.execution.ChangelogStateWriter
import org.apache.spark.sql.changelog.plans.HotKey

/** Which keys are hot: more than a third of an operator's rows have it, and more than 10,000. */
private[execution] object HotKeys {
  private val LeastShare = 1.0 / 3
  private val LeastRows = 10000L

  /**
   * Those of a batch, the hottest first.
   *
   * @param sampled
   *   what tasks have seen
   * @param meeting
   *   how many rows have met, if they were counted
   */
  def apply(sampled: Seq[SampledKeys], meeting: Option[Long]): Seq[HotKey] = {
    val looked = sampled.map(_.rows).sum
    sampled
      .flatMap(_.counts)
      .groupMapReduce(_._1)(_._2)(_ + _)
      .toSeq
      .map { case (key, count) =>
        val share = count.toDouble / looked
        HotKey(key, (share * meeting.getOrElse(looked * KeySample.OneOf)).round, share)
      }
      .filter(key => key.share > LeastShare && key.rows > LeastRows)
      .sortBy(key => (-key.share, key.key))
  }

  /** What is seen of rows before they are combined for an operator, and what helps against hot keys there. */
  def below(operator: SparkPlan): Option[(KeySamples, Option[String])] =
    operator.children.collectFirst(Function.unlift(find))

  private def find(plan: SparkPlan): Option[(KeySamples, Option[String])] = plan match {
    case _: ChangelogStateWriter => None
    case sampling: SampleKeysExec => sampling.samples.map(_ -> sampling.remedy)
    case reused: ReusedExchangeExec => find(reused.child)
    case other => below(other)
  }
}
