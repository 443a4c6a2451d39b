// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import scala.util.Try

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.{
  UnresolvedAttribute, UnresolvedFunction, UnresolvedRelation
}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.UNRESOLVED_HINT
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.ArrayType

import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.plans.{Emission, RowTtl, Skew}

/**
 * Moves a `SKEW` hint to the table that it names, and resolves the columns.
 *
 * {{{
 *   UnresolvedHint SKEW, [b, auction, 1007]       Project
 *   +- Project                                    +- Join
 *      +- Join                             =>        :- Skew [auction] [1007]
 *         :- SubqueryAlias b                         :  +- SubqueryAlias b
 *         +- SubqueryAlias a                         +- SubqueryAlias a
 * }}}
 *
 * A hint without the name of a read table applies to the whole data frame below. A wrong hint is
 * an error only below `to_changelog`, because Spark ignores unknown hints.
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
             else s", or a table of the SELECT: ${tables.mkString(", ")}"))
    }
}

/**
 * A parsed hint that names the hot values of some columns of a table.
 *
 * {{{
 *   SKEW('b', 'auction', 1007)                              one value
 *   SKEW('b', 'auction', (1007, 1008))                      several
 *   SKEW('b', ('auction', 'day'), ((1007, 1), (1008, 2)))   of several columns
 *   SKEW('b', 'auction')                                    every value
 * }}}
 *
 * On a data frame the hint begins with the columns.
 *
 * @param columns
 *   names of columns, in parts
 * @param values
 *   hot values, with one part per column; empty for all values
 */
private[changelog] final case class SkewHint(columns: Seq[Seq[String]], values: Seq[Seq[Literal]])

private[changelog] object SkewHint {
  val Name = "SKEW"

  /** Parses the arguments after a table's name in a hint. */
  def parse(parameters: Seq[Expression]): SkewHint = parameters match {
    case Seq(columns) => SkewHint(names(columns), Nil)
    case Seq(columns, values) =>
      val known = names(columns)
      SkewHint(known, tuples(values, known.size))
    case _ =>
      throw invalid(
        "parameters",
        parameters.map(_.sql).mkString("(", ", ", ")"),
        s"a table, its columns and their values are expected, as in $Name('b', 'auction', (7, 8))")
  }

  /** Returns the name of a table or a column, in parts, if the expression is a name. */
  def nameParts(expression: Expression): Option[Seq[String]] = expression match {
    case StringLiteral(name) => Try(UnresolvedAttribute.parseAttributeName(name)).toOption
    case name: UnresolvedAttribute => Some(name.nameParts)
    case _ => None
  }

  private def names(columns: Expression): Seq[Seq[String]] =
    elements(columns).getOrElse(Seq(columns)).map { column =>
      nameParts(column).getOrElse {
        throw invalid("columns", column.sql, "the name of a column is expected")
      }
    }

  private def tuples(values: Expression, numColumns: Int): Seq[Seq[Literal]] = {
    val several = elements(values)
    val read =
      if (numColumns == 1) several.getOrElse(Seq(values)).map(Seq(_))
      else {
        val tuples = several.toSeq.flatten.map(elements)
        if (tuples.nonEmpty && tuples.forall(_.isDefined)) tuples.flatten else several.toSeq
      }
    if (read.isEmpty || read.exists(_.size != numColumns)) {
      throw invalid(
        "values",
        values.sql,
        if (numColumns == 1) "a value is expected; omit the argument to spread every value"
        else s"each must have a part for each of $numColumns columns, as in ((7, 1), (8, 2))")
    }
    read.map(_.map(constant))
  }

  private def constant(value: Expression): Literal =
    Try(value)
      .filter(value => value.resolved && value.foldable)
      .map(value => Literal(value.eval(), value.dataType))
      .getOrElse(throw invalid("values", value.sql, "a constant is expected"))

  /** Returns the elements of `(7, 8)`, or of an array in a data frame's hint. */
  private def elements(expression: Expression): Option[Seq[Expression]] = expression match {
    case row: CreateNamedStruct => Some(row.valExprs)
    case CreateArray(elements, _) => Some(elements)
    case Literal(array: ArrayData, ArrayType(elementType, _)) =>
      Some(array.toSeq[Any](elementType).map(Literal(_, elementType)))
    case function: UnresolvedFunction
        if Seq("array", "struct").contains(function.nameParts.last) =>
      Some(function.arguments)
    case _ => None
  }

  def invalid(argument: String, value: String, expected: String): AnalysisException =
    ChangelogErrors.argumentInvalid(s"the hint $Name", argument, value, expected)
}

/**
 * Finds the tables named by a hint, in the way Spark finds tables of join hints: within the
 * `SELECT` of the hint.
 */
private[analysis] object HintedTables {

  /**
   * Returns `query` with `over` applied to each table of the name, if the query reads a table of
   * the name.
   */
  def placed(
      query: LogicalPlan,
      name: Seq[String],
      over: LogicalPlan => LogicalPlan): Option[LogicalPlan] = {
    val placed = place(query, name, over)
    if (placed.fastEquals(query)) None else Some(placed)
  }

  /** Returns the names of the tables read by a query, as written in a hint. */
  def names(query: LogicalPlan): Seq[String] = nameOf(query) match {
    case Some(name) => Seq(s"'${name.mkString(".")}'")
    case None if isOtherQuery(query) => Nil
    case None => query.children.flatMap(names)
  }

  private def place(
      plan: LogicalPlan,
      name: Seq[String],
      over: LogicalPlan => LogicalPlan): LogicalPlan = {
    val relation = nameOf(plan)
    if (relation.exists(matches(name, _))) over(plan)
    else if (relation.isDefined || isOtherQuery(plan)) plan
    else plan.mapChildren(place(_, name, over))
  }

  /** Returns the name of a relation in a query. */
  private def nameOf(plan: LogicalPlan): Option[Seq[String]] = plan match {
    case UnresolvedRelation(name, _, _) => Some(name)
    case alias: SubqueryAlias => Some(alias.identifier.qualifier :+ alias.identifier.name)
    case _ => None
  }

  private def isOtherQuery(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[View] || plan.isInstanceOf[UnresolvedWith]

  /** Whether a name in a hint is a suffix of a relation's name. */
  private def matches(name: Seq[String], relation: Seq[String]): Boolean =
    name.size <= relation.size &&
      name.zip(relation.takeRight(name.size)).forall { case (one, other) =>
        SQLConf.get.resolver(one, other)
      }
}

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
