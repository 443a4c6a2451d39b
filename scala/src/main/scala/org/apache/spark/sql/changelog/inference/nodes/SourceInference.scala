// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}

import org.apache.spark.sql.changelog.UpdateKind.{BeforeAndAfter, OnlyUpdateAfter}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.inference.{DescribeNode, InferenceErrors}
import org.apache.spark.sql.changelog.plans.{FromChangelog, InputMode, StateTable, ToChangelog}
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Infers the changes of sources: `from_changelog`, and insert-only streams.
 *
 * A feed with before images emits both images of an update. For a consumer that finds the old row
 * by the feed's key, the feed omits before images. A feed without before images is normalized:
 * the operator stores the last row of each key for retractions. Normalization does not depend on
 * the consumer. Even if no operator needs before images, a repeated row must not be emitted
 * again, and a delete must carry the deleted row.
 */
object SourceInference extends NodeInference[LogicalPlan] {
  override def appliesTo(plan: LogicalPlan): Boolean = plan match {
    case _: FromChangelog => true
    case leaf: LeafNode => leaf.isStreaming
    case _ => false
  }

  override def kinds(plan: LogicalPlan, inputs: NodeInputs): ModifyKindSet = plan match {
    case source: FromChangelog => source.produces
    case _ => ModifyKindSet.InsertOnly
  }

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
          state = Seq(StateTable("rows", source.key.map(_.name), "row", StateTable.unbounded)),
          reasons = Seq(if (source.snapshot.isEmpty) {
            "keeps the last row of each key: the feed has no before images"
          } else {
            "keeps the last row of each key: the first batch begins with a snapshot, and the feed " +
              "may repeat its rows"
          }))
      case _: FromChangelog if demand.kind == OnlyUpdateAfter =>
        // An update may change the key, so before images are omitted only after netting by key.
        decision.copy(strategy = Some("net updates by key at the root"))
      case _ => decision
    }
  }

  private def checked(node: InferredNode, source: FromChangelog): Decision = Decision(
    node.children.map(_ => Demand.nothing),
    state =
      Seq(StateTable("keys", source.key.map(_.name), "count of rows", StateTable.unbounded)),
    reasons = Seq(s"counts the rows of each key: duplicates => '${source.duplicates}'"))
}

/**
 * Infers the changes of `to_changelog`, the root of the query.
 *
 * In retract mode the reader receives both images. In upsert mode the reader replaces rows by a
 * key, and the query is first asked to omit before images. If the query cannot omit them, the
 * root nets each batch by the key. In append mode an emitted row must never change.
 */
object RootInference extends NodeInference[ToChangelog] {
  override def kinds(root: ToChangelog, inputs: NodeInputs): ModifyKindSet = {
    val input = inputs.head
    if (inputs.appends && input.kinds.changesRows) {
      throw InferenceErrors.consumerCannotTakeChanges(
        root,
        input,
        "Use mode => 'retract' or mode => 'upsert'; readers of both accept changes.")
    }
    val halvesArrive =
      inputDemand(root, input).on(input.kinds).kind == BeforeAndAfter && !input.pairsUpdates
    if (halvesArrive) ModifyKindSet.All else input.kinds
  }

  override def decide(node: InferredNode, demand: Demand): Decision =
    Decision(Seq(inputDemand(node.plan.asInstanceOf[ToChangelog], node.child)))

  /** Returns the reader's demand on the root. */
  def readerDemand(root: ToChangelog, input: InferredNode): Demand = root.mode match {
    case OutputMode.Retract => Demand.bothImages("the reader accepts all four row kinds")
    case OutputMode.Append => Demand.nothing
    case OutputMode.Upsert =>
      sinkKey(root, input).map(replacesBy).getOrElse(Demand.nothing)
  }

  private def inputDemand(root: ToChangelog, input: InferredNode): Demand = root.mode match {
    case OutputMode.Upsert =>
      sinkKey(root, input) match {
        case Some(key) if input.upsertKeys.contains(key) =>
          input.objection(key).map(Demand.bothImages).getOrElse(replacesBy(key))
        case Some(key) =>
          Demand.bothImages(
            s"an update can move a row from one ${DescribeNode.key(key)} to another")
        case None => Demand.nothing
      }
    case _ => readerDemand(root, input)
  }

  private def replacesBy(key: AttributeSet): Demand =
    Demand.newRowsBy(
      key,
      if (key.isEmpty) "the result is one row, which the sink replaces"
      else s"the sink replaces rows by key ${DescribeNode.key(key)}")

  /** Returns the key by which the reader replaces rows, if the result changes. */
  private def sinkKey(root: ToChangelog, input: InferredNode): Option[AttributeSet] = {
    val wanted = AttributeSet(root.key)
    if (root.key.nonEmpty) {
      if (!input.upsertKeys.exists(_.subsetOf(wanted))) {
        throw analysis(
          "CHANGELOG_KEY_NOT_UNIQUE",
          "root" -> DescribeNode.short(root),
          "key" -> DescribeNode.key(root.key),
          "keys" -> (if (input.upsertKeys.isEmpty) "none"
                     else input.upsertKeys.map(key => DescribeNode.key(key)).mkString(" or ")))
      }
      Some(wanted)
    } else if (input.kinds.isInsertOnly) {
      None
    } else {
      // Keys come smallest first. A key that permits omitting before images is better than a
      // smaller key.
      input.upsertKeys
        .find(input.objection(_).isEmpty)
        .orElse(input.upsertKeys.headOption)
        .orElse(
          throw analysis(
            "CHANGELOG_KEY_MISSING",
            "root" -> DescribeNode.short(root),
            "node" -> input.name))
    }
  }
}
