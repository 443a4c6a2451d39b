// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import java.util.Locale
import java.util.concurrent.TimeUnit.MILLISECONDS

import scala.util.Try

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{Expression, StringLiteral}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.IntervalUtils
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.plans.{RowTtl, StateTtl}

/**
 * A hint that gives tables a length of time, as it is written.
 *
 * {{{
 *   STATE_TTL(o, '3d', c, '12h')   of two tables
 *   STATE_TTL('3d')                of all that the hint stands on
 * }}}
 *
 * @param least
 *   the shortest length, in ms
 */
sealed abstract class TtlHint(val name: String, least: Long) {

  /** A table that is read for so long, in ms. */
  def over(ttl: Long, table: LogicalPlan): LogicalPlan

  /** The names in a hint with their lengths in ms; no name stands for all of it. */
  def parse(parameters: Seq[Expression]): Seq[(Seq[String], Long)] = parameters match {
    case Seq(ttl) => Seq(Nil -> length(ttl))
    case _ if parameters.nonEmpty && parameters.size % 2 == 0 =>
      parameters.grouped(2).map(pair => nameParts(pair.head) -> length(pair.last)).toSeq
    case _ =>
      throw invalid(
        "parameters",
        parameters.map(_.sql).mkString("(", ", ", ")"),
        s"names with lengths are expected, as in $name(o, '3d')")
  }

  private def nameParts(expression: Expression): Seq[String] = expression match {
    case StringLiteral(name) => UnresolvedAttribute.parseAttributeName(name)
    case name: UnresolvedAttribute => name.nameParts
    case other => throw invalid("name", other.sql, "the name of a table is expected")
  }

  private def length(expression: Expression): Long =
    (expression match {
      case StringLiteral(text) => inMs(text.trim.toLowerCase(Locale.ROOT))
      case _ => None
    }).filter(_ >= least).getOrElse {
      throw invalid(
        "length",
        expression.sql,
        "a length of time is expected, such as '12h' or '3 days'" +
          (if (least == 0) ", or '0' to keep everything" else ""))
    }

  /** As in the session's configuration, or as for a watermark. */
  private def inMs(text: String): Option[Long] =
    Try(JavaUtils.timeStringAsMs(text)).toOption.orElse {
      Try(IntervalUtils.stringToInterval(UTF8String.fromString(text))).toOption
        .filter(_.months == 0)
        .map(IntervalUtils.getDuration(_, MILLISECONDS))
    }

  def invalid(argument: String, value: String, expected: String): AnalysisException =
    ChangelogErrors.argumentInvalid(s"the hint $name", argument, value, expected)
}

object TtlHint {

  /** How long the operator that reads a table keeps rows of it that nothing changes. */
  case object State extends TtlHint("STATE_TTL", least = 0) {
    override def over(ttl: Long, table: LogicalPlan): LogicalPlan = StateTtl(Right(ttl), table)
  }

  /** How long rows that nothing changes are there. */
  case object Row extends TtlHint("ROW_TTL", least = 1) {
    override def over(ttl: Long, table: LogicalPlan): LogicalPlan = RowTtl(ttl, table)
  }

  private val all = Seq(State, Row)

  def named(name: String): Option[TtlHint] = all.find(_.name.equalsIgnoreCase(name))
}
