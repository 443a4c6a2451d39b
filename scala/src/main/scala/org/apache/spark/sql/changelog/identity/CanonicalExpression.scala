// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.sql.catalyst.analysis.SQLScalarFunction
import org.apache.spark.sql.catalyst.encoders.{AgnosticEncoder, ExpressionEncoder}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.expressions.objects.{Invoke, LambdaVariable}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.{DataType, DatetimeType, ObjectType}

import org.apache.spark.sql.changelog.sources.ChangeTypes

/**
 * Writes expressions so that two that mean the same at two starts of a query have the same text.
 *
 * {{{
 *   sum(b#12 + 1)  over columns b#12 -> s1.b     sum(add(s1.b, 1:int, ANSI))
 * }}}
 * Neither expression ids nor the other numbers that count within a JVM are part of it, nor are
 * names of aliases. Conjuncts and disjuncts stand in the order of their texts. What decides how an
 * expression computes, such as a time zone, is one of its arguments, and so part of its text.
 *
 * @param columns
 *   what the columns are that expressions read, by id
 * @param subquery
 *   what a subquery is called, whose expressions may also read `columns`
 * @param hidesTimes
 *   whether constants that are a time are written as such, since they may be that of a batch
 */
private[identity] class CanonicalExpression(
    columns: Map[ExprId, String],
    subquery: LogicalPlan => String,
    hidesTimes: Boolean) {

  /** Variables that an expression brings itself, by their number in this JVM. */
  private val variables = mutable.Map.empty[Any, String]

  def apply(expression: Expression): String = expression match {
    case alias: Alias => apply(alias.child)
    case OuterReference(column) => apply(column)
    case variable: NamedLambdaVariable => variableOf(variable.exprId)
    case column: Attribute => columns.getOrElse(column.exprId, s"?${column.name}")
    case Invoke(Literal(types: ChangeTypes, _), "kindOf", _, arguments, _, _, _, _) =>
      arguments.map(apply).mkString(s"kindOf(${types.mapping}, ", ", ", ")")
    // what becomes of a row that can't be read may change
    case Invoke(Literal(_, _: ObjectType), _, _, _, _, _, _, _) => "refused"
    case Literal(_, _: DatetimeType) if hidesTimes => "time"
    case literal: Literal => s"${valueOf(literal.value)}:${typeOf(literal.dataType)}"
    // every cast has a time zone, and few use it
    case cast: Cast if !Cast.needsTimeZone(cast.child.dataType, cast.dataType) =>
      Seq[Any](cast.child, cast.dataType, cast.evalMode)
        .flatMap(argument)
        .mkString("Cast(", ", ", ")")
    case and: And => sorted(" AND ", conjuncts(and))
    case or: Or => sorted(" OR ", disjuncts(or))
    case With(child, definitions) =>
      definitions.foreach(common => variables(common.id.id) = apply(common.child))
      apply(child)
    case common: CommonExpressionRef => variables.getOrElse(common.id.id, "?common")
    case variable: LambdaVariable => variableOf(variable.id)
    case AggregateExpression(function, _, isDistinct, filter, _) =>
      val distinct = if (isDistinct) Seq("distinct") else Nil
      val filtered = filter.map(condition => s"filter ${apply(condition)}")
      (distinct ++ Seq(apply(function)) ++ filtered).mkString(" ")
    case replaced: RuntimeReplaceable => apply(replaced.replacement)
    case function: SQLScalarFunction => apply(function.child)
    case exists: Exists => called("exists", exists, subquery(exists.plan))
    case in: ListQuery => called("list", in, subquery(in.plan))
    case value: SubqueryExpression => called(value.prettyName, value, subquery(value.plan))
    // the seed of one that is not given by the query is another at each start
    case random: ExpressionWithRandomSeed => random.prettyName
    // of a function of the user its name is all that is the same at each start
    case function: ScalaUDF => called(function.name, function, typeOf(function.dataType))
    case function: PythonUDF => called(function.name, function, typeOf(function.dataType))
    case other: Product =>
      val arguments = other.productIterator.flatMap(argument).mkString(", ")
      s"${nameOf(expression)}($arguments)"
    case other => called(nameOf(other), other, "")
  }

  /** Something that is an argument of an expression or of a plan; none for what only counts. */
  def argument(value: Any): Option[String] = value match {
    case expression: Expression => Some(apply(expression))
    case dataType: DataType => Some(typeOf(dataType))
    case _: ExprId | _: UUID | _: LogicalPlan => None
    case Some(inner) => argument(inner)
    case None => None
    case many: Iterable[_] => Some(many.flatMap(argument).mkString("[", ", ", "]"))
    case many: Array[_] => argument(many.toSeq)
    case encoder: ExpressionEncoder[_] => Some(typeOf(encoder.schema))
    case encoder: AgnosticEncoder[_] => Some(typeOf(encoder.dataType))
    case text: String => Some(text)
    case plain @ (_: Boolean | _: Number | _: Char | _: Enum[_] | _: Enumeration#Value) =>
      Some(plain.toString)
    case single: Product if single.productArity == 0 => Some(single.productPrefix)
    case product: Product =>
      Some(
        s"${product.productPrefix}(${product.productIterator.flatMap(argument).mkString(", ")})")
    case null => None
    case other: AnyRef => Some(nameOf(other))
    case other => Some(other.toString)
  }

  private def called(name: String, expression: Expression, more: String): String =
    (expression.children.map(apply) :+ more).filter(_.nonEmpty).mkString(s"$name(", ", ", ")")

  private def sorted(by: String, parts: Seq[Expression]): String =
    parts.map(apply).sorted.mkString("(", by, ")")

  private def conjuncts(expression: Expression): Seq[Expression] = expression match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case other => Seq(other)
  }

  private def disjuncts(expression: Expression): Seq[Expression] = expression match {
    case Or(left, right) => disjuncts(left) ++ disjuncts(right)
    case other => Seq(other)
  }

  private def valueOf(value: Any): String = value match {
    case bytes: Array[Byte] => bytes.map(byte => f"$byte%02x").mkString
    case other => String.valueOf(other)
  }

  private def variableOf(id: Any): String =
    variables.getOrElseUpdate(id, s"variable${variables.size + 1}")

  private def typeOf(dataType: DataType): String = dataType.catalogString

  /** The name of a class, which for a function is where it was written. */
  private def nameOf(value: AnyRef): String = {
    val name = value match {
      case of: Class[_] => of.getName
      case other => other.getClass.getName
    }
    name.split('.').last.takeWhile(_ != '/').split("\\$\\$Lambda").head.stripSuffix("$")
  }
}
