// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}

import org.apache.spark.sql.changelog.UpdateKind.OnlyUpdateAfter
import org.apache.spark.sql.changelog.plans.{FromChangelog, InputMode, StateTable}
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Where changes come from: `from_changelog`, and streams, which only insert.
 *
 * A feed with before images gives them, or leaves them out for a consumer that finds the old row
 * by the feed's key. A feed without them is normalized: the last row of each key is kept, so that
 * it can be taken back. That holds for every consumer: also where nobody wants before images, a
 * repeated row must not be sent again, and a delete must carry the row it deletes.
 */
object SourceInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan match {
    case _: FromChangelog => true
    case leaf: LeafNode => leaf.isStreaming
    case _ => false
  }

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = plan match {
    case source: FromChangelog => source.produces
    case _ => ModifyKindSet.InsertOnly
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val decision = node.plan match {
      case source: FromChangelog if source.checksKey => checked(node, source)
      case _ => Decision(node.children.map(_ => Demand.nothing))
    }
    node.plan match {
      case source: FromChangelog if source.produces.isInsertOnly => decision
      case source: FromChangelog if source.input == InputMode.Upsert =>
        decision.copy(
          strategy = Some("normalize"),
          state = Seq(
            StateTable(
              "rows",
              source.key.map(_.name),
              "row",
              StateTable.unbounded)),
          reasons = Seq(if (source.snapshot.isEmpty) {
            "keeps the last row of each key: the feed has no before images"
          } else {
            "keeps the last row of each key: the first batch begins with a snapshot, which the feed may " +
              "tell again"
          }))
      case _: FromChangelog if demand.kind == OnlyUpdateAfter =>
        // an update may change the key, so its old row is left out only after netting by key
        decision.copy(strategy = Some("net updates by key at the root"))
      case _ => decision
    }
  }

  private def checked(node: InferredNode, source: FromChangelog): Decision = Decision(
    node.children.map(_ => Demand.nothing),
    state = Seq(
      StateTable(
        "keys",
        source.key.map(_.name),
        "count of rows",
        StateTable.unbounded)),
    reasons = Seq(s"counts the rows of each key: duplicates => '${source.duplicates}'"))
}
