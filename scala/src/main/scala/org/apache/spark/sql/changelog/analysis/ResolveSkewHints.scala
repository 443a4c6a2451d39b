// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnresolvedHint}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.UNRESOLVED_HINT

import org.apache.spark.sql.changelog.plans.Skew

/**
 * Puts what a `SKEW` hint says to where the table it names is read, and then finds the columns.
 * {{{
 *   UnresolvedHint SKEW, [b, auction, 1007]       Project
 *   +- Project                                    +- Join
 *      +- Join                             =>        :- Skew [auction] [1007]
 *         :- SubqueryAlias b                         :  +- SubqueryAlias b
 *         +- SubqueryAlias a                         +- SubqueryAlias a
 * }}}
 * A hint that names no table that is read is one of a data frame, of all that it stands on. What is
 * wrong with a hint is no error where there is no `to_changelog`: Spark ignores hints it does not know.
 */
object ResolveSkewHints extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.resolveOperatorsUpWithPruning(_.containsPattern(UNRESOLVED_HINT)) {
      case hint: UnresolvedHint if hint.name.equalsIgnoreCase(SkewHint.Name) =>
        try place(hint)
        catch { case problem: AnalysisException => wrong(problem, hint.child) }
      case skew: Skew if skew.childrenResolved && !skew.resolved =>
        try skew.copy(columns = skew.names.map(column(skew, _)))
        catch { case problem: AnalysisException => wrong(problem, skew.child) }
    }

  private def place(hint: UnresolvedHint): LogicalPlan = {
    def over(parameters: Seq[Expression], table: LogicalPlan): LogicalPlan = {
      val parsed = SkewHint.parse(parameters)
      Skew(parsed.columns, Nil, parsed.values, None, isFollowed = false, table)
    }
    hint.parameters match {
      case first +: others if others.nonEmpty =>
        SkewHint
          .nameParts(first)
          .flatMap(HintedTables.placed(hint.child, _, over(others, _)))
          .getOrElse(over(hint.parameters, hint.child))
      case parameters => over(parameters, hint.child)
    }
  }

  private def wrong(problem: AnalysisException, child: LogicalPlan): Skew =
    Skew(Nil, Nil, Nil, Some(problem), isFollowed = false, child)

  private def column(skew: Skew, name: Seq[String]): Attribute =
    skew.child.resolve(name, conf.resolver) match {
      case Some(column: Attribute) => column
      case _ =>
        val columns = skew.child.output.map(_.name).mkString(", ")
        val tables = HintedTables.names(skew.child)
        throw SkewHint.invalid(
          "name",
          s"'${name.mkString(".")}'",
          s"it must be one of the columns $columns" +
            (if (tables.isEmpty) ""
             else s", or a table that is read there: ${tables.mkString(", ")}"))
    }
}
