// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{Expression, StringLiteral}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnresolvedHint}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.UNRESOLVED_HINT

import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.plans.{Emission, RowTtl}

/**
 * Moves a `ROW_TTL` hint to the tables that it names.
 *
 * {{{
 *   ROW_TTL(o, '3d', c, '12h')   of two tables
 *   ROW_TTL('3d')                of the whole query below the hint
 *
 *   UnresolvedHint ROW_TTL, [o, 3d]               Project
 *   +- Project                                    +- Join
 *      +- Join                             =>        :- RowTtl 3d
 *         :- SubqueryAlias o                         :  +- SubqueryAlias o
 *         +- SubqueryAlias c                         +- SubqueryAlias c
 * }}}
 *
 * Runs with Spark's own rules for hints, before names are resolved. A wrong hint is an error only
 * below `to_changelog`, because Spark ignores unknown hints.
 */
object ResolveRowTtl extends Rule[LogicalPlan] {
  private val Name = "ROW_TTL"

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.resolveOperatorsUpWithPruning(_.containsPattern(UNRESOLVED_HINT)) {
      case hint: UnresolvedHint if hint.name.equalsIgnoreCase(Name) =>
        try resolve(hint)
        catch { case problem: AnalysisException => RowTtl(0, hint.child, Some(problem)) }
    }

  private def resolve(hint: UnresolvedHint): LogicalPlan =
    parse(hint.parameters).foldLeft(hint.child) {
      case (plan, (Nil, ttl)) => RowTtl(ttl, plan)
      case (plan, (name, ttl)) =>
        HintedTables.placed(plan, name, RowTtl(ttl, _)).getOrElse {
          val read = HintedTables.names(hint.child).mkString(", ")
          throw invalid(
            "name",
            s"'${name.mkString(".")}'",
            s"the SELECT with the hint reads $read")
        }
    }

  /**
   * Returns the names in a hint with their lengths in ms. An empty name stands for the whole
   * query.
   */
  private def parse(parameters: Seq[Expression]): Seq[(Seq[String], Long)] = parameters match {
    case Seq(ttl) => Seq(Nil -> length(ttl))
    case _ if parameters.nonEmpty && parameters.size % 2 == 0 =>
      parameters.grouped(2).map(pair => nameParts(pair.head) -> length(pair.last)).toSeq
    case _ =>
      throw invalid(
        "parameters",
        parameters.map(_.sql).mkString("(", ", ", ")"),
        s"names with lengths are expected, as in $Name(o, '3d')")
  }

  private def nameParts(expression: Expression): Seq[String] = expression match {
    case StringLiteral(name) => UnresolvedAttribute.parseAttributeName(name)
    case name: UnresolvedAttribute => name.nameParts
    case other => throw invalid("name", other.sql, "the name of a table is expected")
  }

  private def length(expression: Expression): Long =
    (expression match {
      case StringLiteral(text) => Emission.inMs(text)
      case _ => None
    }).getOrElse {
      throw invalid(
        "length",
        expression.sql,
        "a length of time is expected, such as '12h' or '3 days'")
    }

  def invalid(argument: String, value: String, expected: String): AnalysisException =
    ChangelogErrors.argumentInvalid(s"the hint $Name", argument, value, expected)
}
