// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.dryrun

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Attribute, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.plans.{FromChangelog, ReadName}

/**
 * A source of a query, as people call it.
 *
 * @param names
 *   those it has in the query: of its view, or as it is called there, where it has no other
 * @param readings
 *   where it is read; the columns of one reading are those of the others under other ids
 */
private[dryrun] final case class NamedSource(names: Seq[String], readings: Seq[FromChangelog]) {
  def columns: Seq[Attribute] = readings.head.output
}

private[dryrun] object NamedSources {

  /** The sources of a query, in the order in which they are read. */
  def apply(plan: LogicalPlan): Seq[NamedSource] = {
    val found = mutable.ArrayBuffer.empty[(FromChangelog, Option[String])]
    def visit(plan: LogicalPlan, name: ReadName): Unit = plan match {
      case source: FromChangelog => found += source -> name.name.orElse(ReadName.within(source))
      case _ =>
        val below = plan match {
          case _: SubqueryAlias | _: View | _: Project | _: Filter => name.below(plan)
          case _ => ReadName.Unknown
        }
        plan.children.foreach(visit(_, below))
        plan.expressions
          .flatMap(_.collect { case subquery: SubqueryExpression => subquery })
          .foreach(subquery => visit(subquery.plan, ReadName.Unknown))
    }
    visit(plan, ReadName.Unknown)
    val keys = found.map { case (source, _) => keyOf(source) }
    keys.distinct.toSeq.map { key =>
      val readings = found.filter { case (source, _) => keyOf(source) == key }.toSeq
      NamedSource(readings.flatMap(_._2).distinct, readings.map(_._1))
    }
  }

  /** Readings of one source have one number, if sources are numbered. */
  private def keyOf(source: FromChangelog): Any =
    if (source.number > 0) source.number else source.output.map(_.exprId)
}
