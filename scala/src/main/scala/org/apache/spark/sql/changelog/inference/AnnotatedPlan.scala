// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.plans.{ExplainNode, FromChangelog, StateTable}
import org.apache.spark.sql.changelog.{ChangelogMode, UpdateKind}

/**
 * One of the places where a part is read that is computed once.
 *
 * @param number
 *   counts the parts of a query, from 1
 * @param readers
 *   how many places there are
 * @param computes
 *   whether this is the place where it is computed
 */
final case class PartReading(number: Int, readers: Int, computes: Boolean) {
  override def toString: String =
    if (computes) s"part $number: computed once for its $readers readers"
    else s"part $number: read again, not computed again"
}

/**
 * What inference found out about one node of a query below `to_changelog`.
 *
 * @param plan
 *   the node, unchanged
 * @param mode
 *   the row kinds it sends to its consumer
 * @param required
 *   how the consumer wants updates to be sent
 * @param requiredKey
 *   the key by which the consumer replaces rows, if it wants updates without before images: rows
 *   are the same row of the consumer exactly when they agree on it
 * @param upsertKeys
 *   every known set of output columns that identifies a row; the empty set means at most one row
 * @param strategy
 *   how the node will be executed, where there is a choice
 * @param state
 *   the tables it keeps
 * @param reasons
 *   sentences that say why the mode and the strategy are what they are
 * @param shared
 *   which of the parts it is that are computed once and read several times
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

  /** The columns of a key, in the order of the node's. */
  def ordered(key: AttributeSet): Seq[Attribute] = plan.output.filter(key.contains)

  /** Visits this node and all below it, inputs first. */
  def foreachUp(visit: AnnotatedPlan => Unit): Unit = {
    children.foreach(_.foreachUp(visit))
    visit(this)
  }
}

/** Tells what inference found out as EXPLAIN says it. */
object ExplainTree {

  /**
   * What EXPLAIN says about an annotated query.
   *
   * @param operators
   *   the nodes that have become operators, with the numbers of those
   */
  def apply(
      annotated: AnnotatedPlan,
      operators: Seq[(AnnotatedPlan, Seq[Long])] = Nil): ExplainNode =
    new ExplainTree(operators).explain(annotated, isPart = false)

  /** The same of one that is only explained, with what its reader might ask for instead. */
  def withAdvice(annotated: AnnotatedPlan): ExplainNode =
    apply(annotated).copy(warnings = Hazards.ofReader(annotated))
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
      if (isReadAgain) Nil else Hazards(annotated))
  }
}
