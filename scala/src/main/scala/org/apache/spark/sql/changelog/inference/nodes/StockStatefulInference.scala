// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.{AttributeSet, PythonUDTF}
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.inference.InferenceErrors
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
    case Generate(function: PythonUDTF, _, _, _, _, _) => readsTable(function)
    case _ => false
  }

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = {
    inputs.find(_.kinds.changesRows).foreach { input =>
      throw InferenceErrors.consumerCannotTakeChanges(plan, input, advice(plan))
    }
    plan match {
      // a generator sees the partitions of a batch, and a table of all rows would have larger ones
      case _: Generate =>
        throw InferenceErrors.nodeNotSupported(
          plan,
          "a function that reads a table would see the rows of one batch only",
          advice(plan))
      case _ => ModifyKindSet.InsertOnly
    }
  }

  private def advice(plan: LogicalPlan): String = plan match {
    case _: FlatMapGroupsWithState | _: FlatMapGroupsInPandasWithState | _: TransformWithState |
        _: TransformWithStateInPySpark | _: Deduplicate | _: DeduplicateWithinWatermark =>
      "Apply it to the stream before from_changelog, or write the query below it as SQL that " +
        "takes changes."
    case _ =>
      "Compute row by row instead, with a function of the row (udf, pandas_udf, map, a table " +
        "function of columns), or group by group, with applyInPandas, applyInArrow or mapGroups, " +
        "which take changes; or apply it to the stream before from_changelog."
  }

  /** Whether it is given a table: its rows, and when it is over, are more than one row tells. */
  private def readsTable(function: PythonUDTF): Boolean =
    function.tableArguments.exists(_.contains(true))

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision =
    Decision(node.children.map(_ => Demand.nothing))
}
