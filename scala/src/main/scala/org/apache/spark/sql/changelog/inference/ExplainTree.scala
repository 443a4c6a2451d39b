// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.changelog.plans.{ExplainNode, FromChangelog}

/** Tells what inference found out as EXPLAIN says it. */
object ExplainTree {

  /** What EXPLAIN says about an annotated query. */
  def apply(annotated: AnnotatedPlan): ExplainNode = explain(annotated, isPart = false)

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
      isPart && annotated.children.nonEmpty)
  }
}
