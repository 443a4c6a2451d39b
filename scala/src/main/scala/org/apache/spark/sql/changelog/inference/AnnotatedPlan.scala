// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.plans.{ExplainNode, FromChangelog, StateTable}
import org.apache.spark.sql.changelog.{ChangelogMode, UpdateKind}

/**
 * A reading of a shared part. A shared part is computed once.
 *
 * @param number
 *   number of the shared part in the query, from 1
 * @param readers
 *   number of readings of the part
 * @param computes
 *   whether this reading computes the part
 */
final case class PartReading(number: Int, readers: Int, computes: Boolean) {
  override def toString: String =
    if (computes) s"part $number: computed once for its $readers readers"
    else s"part $number: read again, not computed again"
}

/**
 * The inferred properties of one node of a query below `to_changelog`.
 *
 * @param plan
 *   the node, unchanged
 * @param mode
 *   the row kinds sent to the consumer
 * @param required
 *   the form of updates requested by the consumer
 * @param requiredKey
 *   the key by which the consumer replaces rows, for updates without before images. Rows with an
 *   equal key are the same row of the consumer.
 * @param upsertKeys
 *   every known set of output columns that identifies a row; the empty set means at most one row
 * @param strategy
 *   the chosen execution strategy, if there is a choice
 * @param state
 *   the tables stored by the node
 * @param reasons
 *   sentences with the reasons for the mode and the strategy
 * @param shared
 *   the reading of a shared part, if the node is one
 */
final case class AnnotatedPlan(
    plan: LogicalPlan,
    mode: ChangelogMode,
    required: UpdateKind,
    requiredKey: Option[AttributeSet],
    upsertKeys: Seq[AttributeSet],
    strategy: Option[String],
    state: Seq[StateTable],
    reasons: Seq[String],
    children: Seq[AnnotatedPlan],
    shared: Option[PartReading] = None) {

  /** Returns the columns of a key, in the order of the node's output. */
  def ordered(key: AttributeSet): Seq[Attribute] = plan.output.filter(key.contains)

  /** Visits the node and its descendants, inputs first. */
  def foreachUp(visit: AnnotatedPlan => Unit): Unit = {
    children.foreach(_.foreachUp(visit))
    visit(this)
  }
}

/** Converts an annotated query to the tree shown by EXPLAIN. */
object ExplainTree {

  /**
   * Returns the EXPLAIN tree of an annotated query.
   *
   * @param operators
   *   the nodes with operators, and the numbers of the operators
   */
  def apply(
      annotated: AnnotatedPlan,
      operators: Seq[(AnnotatedPlan, Seq[Long])] = Nil): ExplainNode =
    new ExplainTree(operators).explain(annotated, isPart = false)

  /**
   * Returns the EXPLAIN tree of a query that does not run, with advice about the reader's mode.
   */
  def withAdvice(annotated: AnnotatedPlan): ExplainNode =
    apply(annotated).copy(warnings = Risks.ofReader(annotated))
}

private class ExplainTree(operators: Seq[(AnnotatedPlan, Seq[Long])]) {

  private def explain(annotated: AnnotatedPlan, isPart: Boolean): ExplainNode = {
    val isReadAgain = annotated.shared.exists(!_.computes)
    val hasParts = annotated.plan match {
      case source: FromChangelog => source.reader.nonEmpty
      case _ => isPart
    }
    ExplainNode(
      DescribeNode.node(annotated.plan),
      DescribeNode.detail(annotated.plan),
      annotated.mode.toString,
      annotated.mode.symbols,
      annotated.required.toString,
      annotated.upsertKeys.map(annotated.ordered(_).map(_.name)),
      if (isReadAgain) None else annotated.strategy,
      if (isReadAgain) Nil else annotated.state,
      annotated.reasons ++ annotated.shared.map(_.toString),
      if (isReadAgain) Nil else annotated.children.map(explain(_, hasParts)),
      isPart && annotated.children.nonEmpty,
      operators.collectFirst { case (node, ids) if node eq annotated => ids }.getOrElse(Nil),
      if (isReadAgain) Nil else Risks(annotated))
  }
}
