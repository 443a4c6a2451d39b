// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import java.util.IdentityHashMap

import scala.collection.mutable

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.identity.{
  CanonicalPlan, OperatorRecord, PartRecord, RecordedRun
}
import org.apache.spark.sql.changelog.inference.{
  AnnotatedPlan, CheckExecutable, DescribeNode, InferChangelogMode
}
import org.apache.spark.sql.changelog.microbatch.KeySamples
import org.apache.spark.sql.changelog.optimizer.rewrite._
import org.apache.spark.sql.changelog.plans._

/**
 * The third phase: annotates each node with its mode, keys, demands, state and reasons, in a tree beside the plan.
 *
 * Relies on [[NormalizePhase]]: each node has a rule of inference, or annotation rejects the query by the node's name.
 *
 * At the end:
 *
 *   - The tree has a node for each node of the plan, static parts and plans below sources included.
 *   - A node's mode has the update kind that its consumer demands. Its keys are columns of its output.
 *   - Of the readings of a shared part, the first computes it.
 *   - A query that runs has an operator for each node ([[CheckExecutable]]).
 *
 * EXPLAIN prints this tree, and `plan.json` records it.
 */
private[optimizer] object AnnotatePhase {

  /** @param salts the salts among which the work of single tasks is divided; empty for one task */
  def apply(roots: Seq[ToChangelog], salts: Seq[Int]): Seq[AnnotatedPlan] = {
    val annotated = ShareEqualParts(roots.map(InferChangelogMode(_, salts)))
    roots.zip(annotated).filterNot(_._1.explainOnly).foreach { case (_, query) =>
      CheckExecutable(query)
    }
    annotated
  }
}

/**
 * The last phase: replaces each annotated node by its operator.
 *
 * Relies on [[AnnotatePhase]], and decides nothing that the tree could tell.
 *
 * At the end:
 *
 *   - A node carries the column `_row_kind` exactly if its mode is not `[I]`.
 *   - Each operator with state has numbers of its own, counted from the sources up.
 *   - The root is a [[ChangelogOutput]] with the records of the operators.
 *
 * @param ids
 *   numbers the operators of the whole plan, across every `to_changelog`
 * @param run
 *   the run that begins with this batch, if one begins
 */
private[optimizer] class EmitPhase(
    session: SparkSession,
    ids: OperatorIds,
    run: Option[RecordedRun]) {
  private val parts = mutable.Map.empty[Int, SharedPart]

  def apply(annotated: AnnotatedPlan): LogicalPlan = {
    val root = annotated.plan.asInstanceOf[ToChangelog]
    if (root.explainOnly) OutputRewrite.explained(annotated)
    else {
      val watch = root.watched.map(new WatchNodes(_, annotated))
      val nodes = new RewriteNodes(
        ids,
        inherits,
        run.exists(_.netsSources),
        KeySamples.ofBatch(session),
        watch,
        parts)
      val changes = nodes(annotated.children.head)
      val operators = nodes.operators.toSeq
      val numbers = operators.map(found => found.node -> found.ids)
      val rewritten = held(root) match {
        case Some(rows) => OutputRewrite.replacing(annotated, changes, rows, numbers)
        case None => OutputRewrite(annotated, changes, numbers)
      }
      RewrittenOperators.note(rewritten, annotated, operators)
      watch.fold[LogicalPlan](rewritten)(_.output(rewritten))
    }
  }

  /** Returns whether a node starts with inherited state, if the query inherits state. */
  private def inherits: Option[RewrittenNode => Boolean] =
    for {
      run <- run
      inherited <- run.inheritedState
    } yield {
      val fingerprints = new Fingerprints(run.sources)
      found => found.givesRows && fingerprints(found.node).exists(inherited.parts)
    }

  /** Returns the rows in the target of a query that inherits state. */
  private def held(root: ToChangelog): Option[LogicalPlan] =
    run.flatMap(_.inheritedRows).map { folder =>
      val columns = DataTypeUtils.fromAttributes(root.child.output)
      session.read.schema(columns).parquet(folder).queryExecution.analyzed
    }
}

/** The records of a rewritten query's operators. */
private[changelog] object RewrittenOperators {

  private val tag =
    TreeNodeTag[Map[Int, String] => Seq[OperatorRecord]]("changelogOperators")

  /** Tags `output` with the records of the query below. */
  private[optimizer] def note(
      output: ChangelogOutput,
      root: AnnotatedPlan,
      operators: Seq[RewrittenNode]): Unit =
    output.setTagValue(tag, records(root, operators, _))

  /**
   * Returns the operators of a rewritten plan.
   *
   * @param sources
   *   descriptions of the query's sources, by source number
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
    val fingerprints = new Fingerprints(sources)
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
