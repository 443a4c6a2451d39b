// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.changes

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{
  Attribute, Cast, Expression, Literal, NamedArgumentExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{
  FunctionSignature, InputParameter, LeafNode, LogicalPlan, NamedParametersSupport
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{IntegralType, LongType, NullType, StringType}
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.compat.NamedStream
import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.functions.FunctionArguments
import org.apache.spark.sql.changelog.views.{ViewCatalog, ViewStorage}

/**
 * ChangesFunction: the SQL table function `changes`: the rows inserted into a view and deleted from a view, for the
 * next consumer.
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

  /** Returns the view's name from the unresolved arguments of a call, if given as a literal. */
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

/**
 * ViewChanges: an unresolved call `changes(…)`, before the analyzer knows whether the query reads a stream.
 *
 * @param from
 *   the first version
 * @param to
 *   the last version
 */
case class ViewChanges(view: String, from: Option[Long], to: Option[Long]) extends LeafNode {
  override def output: Seq[Attribute] = Nil
  override lazy val resolved: Boolean = false
}

/** ResolveViewChanges: replaces a call by a read of the view's changes, as a table or as a stream. */
class ResolveViewChanges(creator: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsDown {
    case NamedStream(changes: ViewChanges) => read(changes, isStream = true)
    case changes: ViewChanges => read(changes, isStream = false)
  }

  private def read(changes: ViewChanges, isStream: Boolean): LogicalPlan = {
    val session = castToImpl(creator)
    val parts = session.sessionState.sqlParser.parseMultipartIdentifier(changes.view)
    val view = new ViewCatalog(session).get(parts)
    val storage = ViewStorage(session, view)
    if (isStream) changes.to.foreach { last =>
      throw ChangelogErrors.argumentInvalid(
        ChangesFunction.Name,
        "to_version",
        last.toString,
        "a stream has no last version: omit the argument")
    }
    val rows =
      if (isStream) storage.changeStream(view, changes.from)
      else storage.changes(view, changes.from.getOrElse(0L), changes.to)
    rows.queryExecution.analyzed
  }
}
