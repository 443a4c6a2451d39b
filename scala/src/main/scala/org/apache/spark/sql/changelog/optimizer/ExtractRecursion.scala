// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.inference.InferenceErrors
import org.apache.spark.sql.changelog.inference.nodes.StaticInference
import org.apache.spark.sql.changelog.plans.{FromChangelog, RecursionInput, RecursiveQuery}

/**
 * Extracts the changing inputs of recursive queries, for an operator to store the rows.
 *
 * {{{
 *   UnionLoop                          RecursiveQuery
 *   :- Filter                          |  UnionLoop
 *   |  +- t                            |  :- input 0
 *   +- Join                     =>     |  +- Join
 *      :- UnionLoopRef                 |     :- UnionLoopRef
 *      +- Aggregate                    |     +- input 1
 *         +- t                         :- Filter
 *                                      |  +- t
 *                                      +- Aggregate
 *                                         +- t
 * }}}
 *
 * An input is a maximal subplan that does not read the recursion. Spark runs the remaining plan
 * over all rows of the inputs.
 */
private[optimizer] object ExtractRecursion extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformDownWithSubqueries {
    case loop: UnionLoop if !StaticInference.isStatic(loop) || readsStreams(loop) =>
      extract(loop)
  }

  private def extract(loop: UnionLoop): RecursiveQuery = {
    val inputs = mutable.ArrayBuffer.empty[LogicalPlan]
    def replace(plan: LogicalPlan): LogicalPlan =
      if (StaticInference.isStatic(plan)) plan
      else if (readsRecursion(plan)) plan.mapChildren(replace)
      else {
        inputs += plan
        RecursionInput(inputs.size - 1, plan.output)
      }
    val extracted = loop.mapChildren(replace).asInstanceOf[UnionLoop]
    refusal(extracted).foreach { reason =>
      throw InferenceErrors.nodeNotSupported(loop, reason, Advice)
    }
    RecursiveQuery(extracted, inputs.toSeq)
  }

  private def readsStreams(plan: LogicalPlan): Boolean =
    plan.collectWithSubqueries {
      case source: FromChangelog if source.streaming => source
    }.nonEmpty

  private def readsRecursion(plan: LogicalPlan): Boolean =
    plan.collectWithSubqueries { case reference: UnionLoopRef => reference }.nonEmpty

  private val Advice = "Store the input of the recursion as a table, such as a materialized " +
    "view, and run the recursive query over the table in batch."

  /** Returns the reason why equal rows might give another result in the next run. */
  private def refusal(loop: UnionLoop): Option[String] = {
    val reads = loop.collectWithSubqueries { case leaf: LeafNode => leaf }
    if (readsStreams(loop)) Some("a subquery within the recursion reads a changing table")
    else if (loop.limit.isDefined) Some("a LIMIT ends the recursion at rows without an order")
    else if (!loop.deterministic) Some("the recursion is not deterministic")
    else
      reads
        .collectFirst { case leaf if !isKnown(leaf) => leaf }
        .map(leaf =>
          s"changes of ${leaf.nodeName}${columns(leaf)} in the recursion are not known")
  }

  private def isKnown(leaf: LeafNode): Boolean = leaf match {
    case _: RecursionInput | _: UnionLoopRef | _: LocalRelation | _: OneRowRelation | _: Range =>
      true
    case _ => false
  }

  private def columns(leaf: LeafNode): String =
    leaf.output.map((_: Attribute).name).mkString(" [", ", ", "]")
}
