// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.changes

import org.apache.spark.sql.catalyst.expressions.{
  Cast,
  Expression,
  Literal,
  NamedArgumentExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{
  FunctionSignature,
  InputParameter,
  LogicalPlan,
  NamedParametersSupport
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{IntegralType, LongType, NullType, StringType}
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.functions.FunctionArguments

/**
 * The SQL table function `changes`: the rows that came into a view and left it, for the next
 * consumer.
 *
 * {{{
 *   SELECT * FROM changes('v', from_version => 7, to_version => 9)
 *   SELECT * FROM STREAM changes('v')
 * }}}
 */
object ChangesFunction {
  val Name = "changes"
  private val View = "view"

  val description: FunctionArguments.Description =
    FunctionArguments.describe(
      Name,
      "The rows that came into a materialized view and left it, version by version")(build)

  private val signature = FunctionSignature(
    InputParameter(View) +: Seq("from_version", "to_version").map(
      InputParameter(_, Some(Literal(null, LongType)))))

  /** The name of the view among the arguments of a call, as far as they tell it before they are resolved. */
  def view(arguments: Seq[Expression]): Option[String] =
    arguments
      .collectFirst {
        case NamedArgumentExpression(name, value) if name.equalsIgnoreCase(View) => value
      }
      .orElse(arguments.headOption)
      .collect { case Literal(name: UTF8String, _) => name.toString }

  private def build(expressions: Seq[Expression]): LogicalPlan = {
    val arguments =
      NamedParametersSupport.defaultRearrange(signature, expressions, Name, SQLConf.get.resolver)
    ViewChanges(
      name(arguments.head),
      version("from_version", arguments(1)),
      version("to_version", arguments(2)))
  }

  private def name(argument: Expression): String = argument.dataType match {
    case _: StringType if argument.foldable && argument.eval() != null =>
      argument.eval().toString
    case _ =>
      throw ChangelogErrors
        .argumentInvalid(Name, View, argument.sql, "the name of a view is expected, as a text")
  }

  private def version(parameter: String, argument: Expression): Option[Long] =
    argument.dataType match {
      case _: IntegralType | NullType if argument.foldable =>
        Option(Cast(argument, LongType).eval()).map(_.asInstanceOf[Long])
      case _ =>
        throw ChangelogErrors
          .argumentInvalid(Name, parameter, argument.sql, "the number of a version is expected")
    }
}
