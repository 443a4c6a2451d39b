// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions.{Alias, UserDefinedExpression}
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.compat.TypedFunctions
import org.apache.spark.sql.changelog.identity.{CanonicalPlan, CanonicalValue}
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, PartReading}
import org.apache.spark.sql.changelog.plans.{AggregateCalls, FromChangelog, RowFunctions}

/**
 * Fingerprints: hashes of the parts of a query. Two parts have equal fingerprints exactly if one
 * part can use the state of the other.
 *
 * @param sources
 *   descriptions of the sources, by source number
 */
private[optimizer] class Fingerprints(sources: Map[Int, String]) {

  /**
   * Returns the fingerprint of `part`, except in three cases:
   *
   *   - The part reads an unknown source.
   *   - The part has a shared part in common with the rest of the query, or with another query of the plan.
   *   - The part calls a user function. Another function may have the name by now.
   */
  def apply(part: AnnotatedPlan): Option[String] = {
    val isKnown = sourcesOf(part.plan).forall(source => sources.contains(source.number))
    val kept = asKept(part.plan)
    if (isKnown && isAlone(part) && !kept.exists(callsUserFunction)) {
      val texts = CanonicalPlan.exactTexts(kept, sources)
      val top = kept match {
        case _: Aggregate => Seq[Any](texts(kept), part.strategy, tables(part)).mkString(" ")
        case _ => line(part, texts)
      }
      val all = top +: inputs(part).flatMap(lines(_, texts))
      Some(CanonicalValue.digest(all.mkString("\n")))
    } else None
  }

  /**
   * Reduces a node to the parts that determine its state. An aggregate's state depends on the
   * functions, not on the results computed from them.
   */
  private def asKept(plan: LogicalPlan): LogicalPlan = plan match {
    case aggregate: Aggregate =>
      val calls = AggregateCalls(aggregate)
      aggregate.copy(aggregateExpressions = calls.functions.map(Alias(_, "call")()))
    case other => other
  }

  /**
   * Skips projections: the columns show in their readers, and a batch may have projections absent
   * from the analyzed query.
   */
  private def lines(node: AnnotatedPlan, texts: LogicalPlan => String): Seq[String] = {
    val below = inputs(node).flatMap(lines(_, texts))
    node.plan match {
      case _: Project => below
      case _ => line(node, texts) +: below
    }
  }

  private def line(node: AnnotatedPlan, texts: LogicalPlan => String): String = {
    val replacedBy = node.requiredKey.map(key => node.plan.output.map(key.contains))
    Seq[Any](texts(node.plan), node.mode, node.required, replacedBy, node.strategy, tables(node))
      .mkString(" ")
  }

  /** Column names depend on the query's text. */
  private def tables(node: AnnotatedPlan): Seq[Any] =
    node.state.map(table => (table.table, table.key.size, table.keepsAll))

  /** The plan below a source is a stream, or the rows of one batch. */
  private def inputs(node: AnnotatedPlan): Seq[AnnotatedPlan] = node.plan match {
    case _: FromChangelog => Nil
    case _ => node.children
  }

  private def callsUserFunction(plan: LogicalPlan): Boolean = plan match {
    case _: ObjectConsumer | _: ObjectProducer | _: TypedFilter => true
    case _ =>
      plan.expressions.exists(_.exists {
        case _: UserDefinedExpression | _: RowFunctions => true
        case other => TypedFunctions.isCalledBy(other)
      })
  }

  private def sourcesOf(plan: LogicalPlan): Seq[FromChangelog] =
    plan.collect { case source: FromChangelog => source }

  /** Whether no shared part within `part` has a reader outside. */
  private def isAlone(part: AnnotatedPlan): Boolean = {
    val within = part.children.flatMap(sharedIn)
    within.forall(reading => within.count(_.number == reading.number) == reading.readers)
  }

  private def sharedIn(node: AnnotatedPlan): Seq[PartReading] =
    node.shared.toSeq ++ node.children.flatMap(sharedIn)
}
