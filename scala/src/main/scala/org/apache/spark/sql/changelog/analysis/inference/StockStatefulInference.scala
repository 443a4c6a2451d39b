// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis.inference

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.analysis.InferenceErrors
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Spark's own stateful operators, and functions over whole partitions of rows: code that has no
 * notion of a row being taken back. They take new rows only, and what they give is new.
 */
object StockStatefulInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan match {
    case _: FlatMapGroupsWithState | _: FlatMapGroupsInPandasWithState => true
    case _: TransformWithState | _: TransformWithStateInPySpark => true
    case _: Deduplicate | _: DeduplicateWithinWatermark => true
    case _: MapPartitions | _: MapInPandas | _: MapInArrow | _: AttachDistributedSequence => true
    case _: MapPartitionsInR | _: MapPartitionsInRWithArrow => true
    case _ => false
  }

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = {
    inputs.find(_.kinds.changesRows).foreach { input =>
      throw InferenceErrors.consumerCannotTakeChanges(
        plan,
        input,
        "Apply it to the stream before from_changelog, or write the query below it as SQL that " +
          "takes changes.")
    }
    ModifyKindSet.InsertOnly
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision =
    Decision(node.children.map(_ => Demand.nothing))
}
