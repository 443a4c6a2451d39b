// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.changelog.plans.{ExplainNode, FromChangelog}

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
