// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import scala.util.Try

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry.TableFunctionBuilder
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData, UnsafeRowUtils}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.plans.{FromChangelog, InputMode, ToChangelog}
import org.apache.spark.sql.changelog.sources.snapshots.InitialSnapshot

/**
 * Reads the arguments of a table function by name.
 *
 * The first argument is the table. Further arguments are optional constants.
 */
private[changelog] class FunctionArguments(
    function: String,
    parameters: Seq[String],
    arguments: Seq[Expression]) {

  private val byName: Map[String, Expression] = {
    val signature = InputParameter("source") +:
      parameters.map(InputParameter(_, Some(Literal(null, StringType))))
    val ordered = NamedParametersSupport.defaultRearrange(
      FunctionSignature(signature),
      arguments,
      function,
      SQLConf.get.resolver)
    signature.map(_.name).zip(ordered).toMap
  }

  /** The query given as `TABLE(...)`. */
  lazy val source: LogicalPlan = tableOf("source", byName("source"))

  /** Returns a further query given as `TABLE(...)`, if any. */
  def table(argument: String): Option[LogicalPlan] = byName(argument) match {
    case nothing if isNull(nothing) => None
    case other => Some(tableOf(argument, other))
  }

  private def tableOf(argument: String, expression: Expression): LogicalPlan = expression match {
    case table: FunctionTableSubqueryArgumentExpression
        if table.hasRepartitioning || table.orderByExpressions.nonEmpty =>
      throw invalid(
        argument,
        "TABLE(...) with PARTITION BY, ORDER BY or WITH SINGLE PARTITION",
        "the function accepts only TABLE(t), without partitioning and order")
    // Spark corrects the nullability of columns only later.
    case table: FunctionTableSubqueryArgumentExpression =>
      SparkRules.updateNullability(table.plan)
    case other => throw invalid(argument, other.sql, "a table is expected, as in TABLE(t)")
  }

  /**
   * Returns the snapshot for the first batch, if any. A key identifies equal rows of snapshot and
   * feed.
   */
  def snapshot(key: Seq[Any], timeZone: String): Option[InitialSnapshot] =
    table(FunctionArguments.Snapshot).map { plan =>
      if (key.isEmpty) throw analysis("CHANGELOG_SNAPSHOT_KEY_MISSING", "function" -> function)
      new InitialSnapshot(function, plan, timeZone)
    }

  /**
   * Returns the input mode. A snapshot requires upsert mode, because the feed may repeat rows of
   * the snapshot.
   */
  def inputMode(default: InputMode): InputMode = {
    val chosen = choice("input", InputMode.values)
    if (!has(FunctionArguments.Snapshot)) chosen.getOrElse(default)
    else {
      if (chosen.contains(InputMode.Retract)) {
        throw invalid(
          "input",
          "'retract'",
          "a snapshot requires 'upsert', the default with a snapshot")
      }
      InputMode.Upsert
    }
  }

  /** Rejects a source that already contains `from_changelog` or `to_changelog`. */
  def checkNotNested(): Unit = source.foreach {
    case _: ToChangelog =>
      throw analysis(
        "CHANGELOG_NESTED",
        "function" -> function,
        "outer" -> ToChangelogFunction.Name,
        "advice" -> ("to_changelog returns the changes of a query, and the query itself is a table: read the " +
          "query without to_changelog. To run two queries, write the changes to a topic, a Delta " +
          s"table or a materialized view, and apply $function to a stream of these changes."))
    case _: FromChangelog =>
      throw analysis(
        "CHANGELOG_NESTED",
        "function" -> function,
        "outer" -> FromChangelogFunction.Name,
        "advice" -> s"Apply $function once, directly to the rows that describe changes.")
    case _ =>
  }

  /** Returns a string constant. */
  def text(argument: String): Option[String] = constant(argument).map {
    case value: UTF8String => value.toString
    case _ => throw invalid(argument, byName(argument).sql, "a string is expected")
  }

  /** Returns a string constant with a fixed set of values. */
  def choice[T](argument: String, values: Seq[T]): Option[T] = text(argument).map { name =>
    values.find(_.toString.equalsIgnoreCase(name)).getOrElse {
      throw invalid(
        argument,
        s"'$name'",
        s"one of ${values.mkString("'", "', '", "'")} is expected")
    }
  }

  /** Returns columns of the source, from one name or an array of names. */
  def columns(argument: String): Seq[Attribute] = names(argument).map(column(argument, _))

  /** Returns names, from one name or an array of names. */
  def names(argument: String): Seq[String] = constant(argument).toSeq.flatMap {
    case name: UTF8String => Seq(name.toString)
    case array: ArrayData if isTexts(argument) =>
      val names = array.toArray[UTF8String](StringType).toSeq
      if (names.contains(null)) throw noNames(argument)
      names.map(_.toString)
    case _ => throw noNames(argument)
  }

  /** Returns an argument that need not be a constant. */
  def value(argument: String): Expression = byName(argument)

  /** Whether the argument is given. */
  def has(argument: String): Boolean = !isNull(byName(argument))

  /** Returns a column of the source, by its exact name or by its name in SQL. */
  def column(argument: String, name: String): Attribute =
    source.output.filter(column => SQLConf.get.resolver(column.name, name)) match {
      case Seq(column) => column
      case _ =>
        Try(CatalystSqlParser.parseMultipartIdentifier(name)).toOption
          .flatMap(source.resolve(_, SQLConf.get.resolver))
          .collect { case attribute: Attribute => attribute }
          .getOrElse {
            val columns = source.output.map(_.name)
            throw analysis(
              "CHANGELOG_COLUMN_NOT_FOUND",
              "function" -> function,
              "argument" -> argument,
              "column" -> name,
              "columns" -> columns)
          }
    }

  /** Returns a map of strings. */
  def mapping(argument: String): Option[Map[String, String]] = {
    val mapType = MapType(StringType, StringType)
    byName(argument) match {
      case map if map.foldable && DataType.equalsIgnoreNullability(map.dataType, mapType) =>
        Option(map.eval()).map { value =>
          val data = value.asInstanceOf[MapData]
          val keys = data.keyArray().toArray[UTF8String](StringType)
          val values = data.valueArray().toArray[UTF8String](StringType)
          keys.map(_.toString).zip(values.map(String.valueOf(_))).toMap
        }
      case nothing if isNull(nothing) => None
      case other => throw invalid(argument, other.sql, "a map of strings to strings is expected")
    }
  }

  /** Rejects a key column whose type cannot identify a row. */
  def checkKey(name: String, dataType: DataType): Unit =
    if (!UnsafeRowUtils.isBinaryStable(dataType) || !RowOrdering.isOrderable(dataType)) {
      val expected = "equal values of a key column must have equal bytes, unlike values of type "
      throw invalid("key", name, expected + dataType.sql)
    }

  def invalid(argument: String, value: String, expected: String): AnalysisException =
    ChangelogErrors.argumentInvalid(function, argument, value, expected)

  private def isTexts(argument: String): Boolean = byName(argument).dataType match {
    case ArrayType(_: StringType, _) => true
    case _ => false
  }

  private def noNames(argument: String): AnalysisException =
    invalid(argument, byName(argument).sql, "a column name or an array of them is expected")

  private def constant(argument: String): Option[Any] = byName(argument) match {
    case expression if expression.foldable => Option(expression.eval())
    case other => throw invalid(argument, other.sql, "a constant is expected")
  }

  private def isNull(expression: Expression): Boolean =
    expression.foldable && expression.eval() == null
}

private[changelog] object FunctionArguments {

  /** The argument with the snapshot for the first batch. */
  val Snapshot = "snapshot"

  /** A table function in the form registered by a session extension. */
  type Description = (FunctionIdentifier, ExpressionInfo, TableFunctionBuilder)

  /**
   * Describes a table function.
   *
   * @param usage
   *   the text shown by `DESCRIBE FUNCTION`
   */
  def describe(name: String, usage: String)(build: TableFunctionBuilder): Description = (
    FunctionIdentifier(name),
    new ExpressionInfo(
      getClass.getName,
      null,
      name,
      usage,
      "",
      "",
      "",
      "table_funcs",
      "0.1.0",
      "",
      "built-in"),
    build)
}
