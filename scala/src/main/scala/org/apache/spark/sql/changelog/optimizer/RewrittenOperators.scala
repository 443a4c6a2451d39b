// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import java.util.IdentityHashMap

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag

import org.apache.spark.sql.changelog.identity.{CanonicalPlan, OperatorRecord, PartRecord}
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, DescribeNode}
import org.apache.spark.sql.changelog.optimizer.rewrite.RewrittenNode
import org.apache.spark.sql.changelog.plans.ChangelogOutput

/** What a checkpoint says of the operators that a query was rewritten to. */
private[changelog] object RewrittenOperators {

  private val tag =
    TreeNodeTag[Map[Int, String] => Seq[OperatorRecord]]("changelogOperators")

  /** Lets `output` know what the query below it was. */
  private[optimizer] def note(
      output: ChangelogOutput,
      root: AnnotatedPlan,
      operators: Seq[RewrittenNode]): Unit =
    output.setTagValue(tag, records(root, operators, _))

  /**
   * The operators of a rewritten plan.
   *
   * @param sources
   *   what the query's sources are, by their numbers
   */
  def in(plan: LogicalPlan, sources: Map[Int, String]): Seq[OperatorRecord] =
    plan.collect { case output: ChangelogOutput => output }.flatMap { output =>
      output.getTagValue(tag).toSeq.flatMap(_(sources))
    }

  private def records(
      root: AnnotatedPlan,
      operators: Seq[RewrittenNode],
      sources: Map[Int, String]): Seq[OperatorRecord] = {
    val texts = CanonicalPlan.texts(root.plan)
    val fingerprints = new Fingerprints(root, sources)
    val ids = new IdentityHashMap[AnnotatedPlan, Seq[Long]]
    operators.foreach(found => ids.put(found.node, found.ids))
    def within(part: AnnotatedPlan): Seq[Long] =
      part.children.flatMap(within) ++ Option(ids.get(part)).toSeq.flatten
    operators.map { case RewrittenNode(node, ids, givesRows) =>
      OperatorRecord(
        ids,
        texts(node.plan),
        s"${DescribeNode.node(node.plan)} ${DescribeNode.detail(node.plan)}",
        node.mode.toString,
        node.state.map(_.toString),
        fingerprints(node).map(PartRecord(_, within(node).sorted, givesRows)))
    }
  }
}
