// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.api.python.PythonFunction
import org.apache.spark.sql.catalyst.analysis.SQLScalarFunction
import org.apache.spark.sql.catalyst.encoders.{AgnosticEncoder, ExpressionEncoder}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.expressions.objects.{Invoke, LambdaVariable, StaticInvoke}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.{CalendarInterval, UTF8String, VariantVal}

import org.apache.spark.sql.changelog.plans.KeyCheck
import org.apache.spark.sql.changelog.sources.ChangeTypes
import org.apache.spark.sql.changelog.sources.records._

/**
 * Writes expressions as text. Expressions with equal meaning have equal text at every start of a
 * query.
 *
 * {{{
 *   sum(b#12 + 1)  over columns b#12 -> s1.b     sum(add(s1.b, 1:int, ANSI))
 * }}}
 *
 * The text omits expression ids, other counters of the JVM and alias names. Conjuncts and
 * disjuncts are sorted by text. Settings of an expression, such as a time zone, are arguments and
 * therefore part of the text.
 *
 * @param columns
 *   the texts of columns, by id
 * @param subquery
 *   the text of a subquery, whose expressions may also read `columns`
 * @param constant
 *   the text of a constant
 */
private[identity] class CanonicalExpression(
    columns: Map[ExprId, String],
    subquery: LogicalPlan => String,
    constant: Literal => String)
    extends PredicateHelper {

  import CanonicalExpression._

  /** The variables of lambda functions and common expressions, by their number in this JVM. */
  private val variables = mutable.Map.empty[Any, String]
  private var depth = 0

  def apply(expression: Expression): String = expression match {
    case alias: Alias => apply(alias.child)
    case OuterReference(column) => apply(column)
    case variable: NamedLambdaVariable => variables.getOrElse(variable.exprId, "?variable")
    case LambdaFunction(function, arguments, _) => lambda(function, arguments)
    case field: GetStructField => s"${apply(field.child)}.${field.extractFieldName}"
    case column: Attribute => columns.getOrElse(column.exprId, s"?${column.name}")
    case Invoke(Literal(types: ChangeTypes, _), "kindOf", _, arguments, _, _, _, _) =>
      arguments.map(apply).mkString(s"kindOf(${types.mapping}, ", ", ", ")")
    case Invoke(Literal(parser: RecordParser, _), _, _, arguments, _, _, _, _) =>
      apply(parser.ofSpark(arguments.head))
    // Keeps the text of older records, from before excess digits were errors.
    case call: StaticInvoke if call.functionName == "roundedDecimal" =>
      apply(call.copy(functionName = "decimal"))
    case call: StaticInvoke if call.functionName == "exactDecimal" =>
      apply(Cast(call.arguments.head, call.dataType, None, EvalMode.TRY))
    case Invoke(Literal(own, _: ObjectType), function, _, arguments, _, _, _, _) =>
      own match {
        // The handling of bad rows may change at a restart.
        case _: ChangeTypes | _: RecordFaults | _: DeadLetters | _: KeyCheck => "refused"
        // The registry may move.
        case _: SchemaRegistry => arguments.map(apply).mkString("decoded(", ", ", ")")
        case evaluator =>
          (argument(evaluator) ++ arguments.map(apply)).mkString(s"$function(", ", ", ")")
      }
    // The arguments may be encryption keys.
    case call: StaticInvoke if Secret(call.functionName) =>
      s"${call.functionName}(${CanonicalValue.digest(call.arguments.map(apply).mkString(", "))})"
    case literal: Literal => constant(literal)
    // The mode of a cast also decides about the format of decimals.
    case cast: Cast if writesDecimals(cast) =>
      s"Cast(${apply(cast.child)}, ${typeOf(cast.dataType)}, plain ${cast.ansiEnabled})"
    // Every cast has a time zone, and few casts use it.
    case cast: Cast if !Cast.needsTimeZone(cast.child.dataType, cast.dataType) =>
      Seq[Any](cast.child, cast.dataType, cast.evalMode)
        .flatMap(argument)
        .mkString("Cast(", ", ", ")")
    case and: And => sorted(" AND ", splitConjunctivePredicates(and))
    case or: Or => sorted(" OR ", splitDisjunctivePredicates(or))
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
    // A random seed not given by the query changes at each start.
    case random: ExpressionWithRandomSeed =>
      val others = (random: Expression).children.filterNot(_ eq random.seedExpression)
      others.map(apply).mkString(s"${random.prettyName}(", ", ", ")")
    // Only the name of a user function is stable across starts.
    case function: ScalaUDF => called(function.name, function, typeOf(function.dataType))
    case function: PythonUDF => called(function.name, function, typeOf(function.dataType))
    case function: PythonUDAF => called(function.name, function, typeOf(function.dataType))
    case function: PythonUDTF => called(function.name, function, typeOf(function.elementSchema))
    case other: Product =>
      val arguments = other.productIterator.flatMap(argument).mkString(", ")
      s"${nameOf(expression)}($arguments)"
    case other => called(nameOf(other), other, "")
  }

  /**
   * Returns the text of an argument of an expression or plan, unless the argument is a counter.
   */
  def argument(value: Any): Option[String] = value match {
    case expression: Expression => Some(apply(expression))
    case dataType: DataType => Some(typeOf(dataType))
    case _: ExprId | _: UUID | _: LogicalPlan => None
    case Some(inner) => argument(inner)
    case None => None
    // Options may be secret, and have no order.
    case options: Map[_, _] =>
      val texts = options.toSeq.map { case (key, value) =>
        s"$key=${CanonicalValue.digest(String.valueOf(value))}"
      }
      Some(texts.sorted.mkString("{", ", ", "}"))
    case values: Set[_] => Some(values.toSeq.flatMap(argument).sorted.mkString("{", ", ", "}"))
    case many: Iterable[_] => Some(many.flatMap(argument).mkString("[", ", ", "]"))
    case bytes: Array[Byte] => Some(CanonicalValue(bytes, BinaryType))
    case many: Array[_] => argument(many.toSeq)
    case text: UTF8String => Some(CanonicalValue.quoted(text.toString))
    case value @ (_: Decimal | _: CalendarInterval | _: VariantVal) => Some(value.toString)
    case _: PythonFunction => None
    case encoder: ExpressionEncoder[_] => Some(typeOf(encoder.schema))
    case encoder: AgnosticEncoder[_] => Some(typeOf(encoder.dataType))
    case text: String => Some(CanonicalValue.quoted(text))
    case mode: Enumeration#Value if EvalMode.values.exists(_ == mode) =>
      Some(s"mode=$mode")
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

  /** Names variables by the nesting depth of the function and their position. */
  private def lambda(function: Expression, arguments: Seq[NamedExpression]): String = {
    depth += 1
    arguments.zipWithIndex.foreach { case (variable, place) =>
      variables(variable.exprId) = s"x$depth.$place"
    }
    try s"(${arguments.map(apply).mkString(", ")}) -> ${apply(function)}"
    finally depth -= 1
  }

  private def writesDecimals(cast: Cast): Boolean = cast.dataType.isInstanceOf[StringType] &&
    cast.child.dataType.existsRecursively(_.isInstanceOf[DecimalType])

  private def variableOf(id: Any): String =
    variables.getOrElseUpdate(id, s"variable${variables.size + 1}")

  private def typeOf(dataType: DataType): String = dataType.catalogString

  /** Returns the name of a class. For a function, the name tells the place of its definition. */
  private def nameOf(value: AnyRef): String = {
    val name = value match {
      case of: Class[_] => of.getName
      case other => other.getClass.getName
    }
    name.split('.').last.takeWhile(_ != '/').split("\\$\\$Lambda").head.stripSuffix("$")
  }
}

private[identity] object CanonicalExpression {

  private val Secret = Set("aesEncrypt", "aesDecrypt")
}
