// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import scala.util.Try

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedFunction}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.ArrayType

import org.apache.spark.sql.changelog.errors.ChangelogErrors

/**
 * A hint that says which values of some columns many rows of a table have, as it is written.
 *
 * {{{
 *   SKEW('b', 'auction', 1007)                              one value
 *   SKEW('b', 'auction', (1007, 1008))                      several
 *   SKEW('b', ('auction', 'day'), ((1007, 1), (1008, 2)))   of several columns
 *   SKEW('b', 'auction')                                    whichever they are
 * }}}
 * On a data frame it begins with the columns.
 *
 * @param columns
 *   names of columns, in parts
 * @param values
 *   for each value a part for each column; none if all values are meant
 */
private[changelog] final case class SkewHint(columns: Seq[Seq[String]], values: Seq[Seq[Literal]])

private[changelog] object SkewHint {
  val Name = "SKEW"

  /** What follows the name of a table in a hint. */
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

  /** The name of a table or a column, in parts; none if it is no name. */
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
        if (numColumns == 1) "at least one is expected, or none at all for whichever they are"
        else s"each must have a part for each of $numColumns columns, as in ((7, 1), (8, 2))")
    }
    read.map(_.map(constant))
  }

  private def constant(value: Expression): Literal =
    Try(value)
      .filter(value => value.resolved && value.foldable)
      .map(value => Literal(value.eval(), value.dataType))
      .getOrElse(throw invalid("values", value.sql, "a constant is expected"))

  /** The elements of `(7, 8)`, or of an array that a data frame's hint has. */
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
