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
import org.apache.spark.sql.changelog.errors.{ChangelogErrors, SnapshotErrors}
import org.apache.spark.sql.changelog.plans.{FromChangelog, InputMode, ToChangelog}
import org.apache.spark.sql.changelog.sources.snapshots.InitialSnapshot

/**
 * Reads the arguments of a table function by name.
 *
 * The first argument is the table; all others are constants and may be left out.
 */
private[functions] class FunctionArguments(
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

  /** A further query given as `TABLE(...)`, if one is. */
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
        "its rows are taken as they come, as in TABLE(t)")
    // Spark sets right only later which columns can be NULL
    case table: FunctionTableSubqueryArgumentExpression =>
      SparkRules.updateNullability(table.plan)
    case other => throw invalid(argument, other.sql, "a table is expected, as in TABLE(t)")
  }

  /** What the first batch is to begin with, if anything. Its rows and those of the feed are told by key. */
  def snapshot(key: Seq[Any], timeZone: String): Option[InitialSnapshot] =
    table(FunctionArguments.Snapshot).map { plan =>
      if (key.isEmpty) throw SnapshotErrors.keyMissing(function)
      new InitialSnapshot(function, plan, timeZone)
    }

  /** Whether old rows are there. With a snapshot they are restored, for the feed may tell its rows again. */
  def inputMode(default: InputMode): InputMode = {
    val chosen = choice("input", InputMode.values)
    if (!has(FunctionArguments.Snapshot)) chosen.getOrElse(default)
    else {
      if (chosen.contains(InputMode.Retract)) {
        throw invalid(
          "input",
          "'retract'",
          "with a snapshot rows are replaced by key: leave it out, or give 'upsert'")
      }
      InputMode.Upsert
    }
  }

  /** Refuses a source that is a table already, or its changes. */
  def checkNotNested(): Unit = source.foreach {
    case _: ToChangelog =>
      throw ChangelogErrors.nested(
        function,
        ToChangelogFunction.Name,
        "What to_changelog gives are the changes of its query, which is a table as it is: read that " +
          "query itself. To run the two apart, write the changes somewhere, as to a topic, a Delta " +
          s"table or a materialized view, and apply $function to a stream of those.")
    case _: FromChangelog =>
      throw ChangelogErrors.nested(
        function,
        FromChangelogFunction.Name,
        s"Apply $function once, directly to the rows that describe changes.")
    case _ =>
  }

  /** A string constant. */
  def text(argument: String): Option[String] = constant(argument).map {
    case value: UTF8String => value.toString
    case _ => throw invalid(argument, byName(argument).sql, "a string is expected")
  }

  /** A string constant out of a few. */
  def choice[T](argument: String, values: Seq[T]): Option[T] = text(argument).map { name =>
    values.find(_.toString.equalsIgnoreCase(name)).getOrElse {
      throw invalid(
        argument,
        s"'$name'",
        s"one of ${values.mkString("'", "', '", "'")} is expected")
    }
  }

  /** Columns of the source, by one name or an array of names. */
  def columns(argument: String): Seq[Attribute] = names(argument).map(column(argument, _))

  /** Names, as one or an array of them. */
  def names(argument: String): Seq[String] = constant(argument).toSeq.flatMap {
    case name: UTF8String => Seq(name.toString)
    case array: ArrayData if isTexts(argument) =>
      val names = array.toArray[UTF8String](StringType).toSeq
      if (names.contains(null)) throw noNames(argument)
      names.map(_.toString)
    case _ => throw noNames(argument)
  }

  /** Whether the argument is given. */
  def has(argument: String): Boolean = !isNull(byName(argument))

  /** A column of the source: its very name, or as one would write it in SQL. */
  def column(argument: String, name: String): Attribute =
    source.output.filter(column => SQLConf.get.resolver(column.name, name)) match {
      case Seq(column) => column
      case _ =>
        Try(CatalystSqlParser.parseMultipartIdentifier(name)).toOption
          .flatMap(source.resolve(_, SQLConf.get.resolver))
          .collect { case attribute: Attribute => attribute }
          .getOrElse {
            val columns = source.output.map(_.name)
            throw ChangelogErrors.columnNotFound(function, argument, name, columns)
          }
    }

  /** A map of strings. */
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

  /** Refuses a key column of a type that can't identify a row. */
  def checkKey(name: String, dataType: DataType): Unit =
    if (!UnsafeRowUtils.isBinaryStable(dataType) || !RowOrdering.isOrderable(dataType)) {
      val expected = "a key needs a type whose equal values have equal bytes, unlike "
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

  /** The argument that gives what the first batch begins with. */
  val Snapshot = "snapshot"

  /** A table function as an extension gives it to a session. */
  type Description = (FunctionIdentifier, ExpressionInfo, TableFunctionBuilder)

  /**
   * Describes a table function.
   *
   * @param usage
   *   what `DESCRIBE FUNCTION` shows
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
