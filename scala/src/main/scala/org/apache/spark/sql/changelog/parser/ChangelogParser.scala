// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.{ParameterContext, ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.{FunctionIdentifier, TableIdentifier}
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.compat.DelegatingParser
import org.apache.spark.sql.changelog.explain.{
  ExplainChangelogCommand,
  ExplainFormat,
  ExplainQueryCommand
}
import org.apache.spark.sql.changelog.views.{ResolveViewStatements, ViewStatement}

/**
 * Understands `EXPLAIN CHANGELOG [VERBOSE | FORMAT …] query`, the same with `QUERY 'name'` for one that
 * runs, and statements about views, and hands everything else, the queries included, to Spark's parser.
 */
class ChangelogParser(protected val delegate: ParserInterface) extends DelegatingParser {
  import ChangelogParser._

  private val views = new ViewStatement(delegate)

  override def parsePlan(sqlText: String): LogicalPlan =
    parse(sqlText, delegate.parsePlan)

  override def parsePlanWithParameters(
      sqlText: String,
      parameterContext: ParameterContext): LogicalPlan =
    parse(sqlText, delegate.parsePlanWithParameters(_, parameterContext))

  private def parse(sqlText: String, spark: String => LogicalPlan): LogicalPlan =
    try
      views(sqlText, spark).getOrElse {
        sqlText match {
          case Prefix(verbose, form, query) =>
            val format = ExplainFormat(Seq(verbose, form, "TEXT").find(_ != null).get)
            query match {
              case Running(name) => ExplainQueryCommand(name.replace("''", "'"), format)
              case _ => ExplainChangelogCommand(spark(query), format)
            }
          case _ => ResolveViewStatements.parsed(spark(sqlText))
        }
      }
    catch {
      case error: ParseException => throw error
      case error: AnalysisException => RefusedStatement()(error)
    }

  override def parseQuery(sqlText: String): LogicalPlan = delegate.parseQuery(sqlText)

  override def parseExpression(sqlText: String): Expression = delegate.parseExpression(sqlText)

  override def parseTableIdentifier(sqlText: String): TableIdentifier =
    delegate.parseTableIdentifier(sqlText)

  override def parseFunctionIdentifier(sqlText: String): FunctionIdentifier =
    delegate.parseFunctionIdentifier(sqlText)

  override def parseMultipartIdentifier(sqlText: String): Seq[String] =
    delegate.parseMultipartIdentifier(sqlText)

  override def parseRoutineParam(sqlText: String): StructType =
    delegate.parseRoutineParam(sqlText)

  override def parseTableSchema(sqlText: String): StructType = delegate.parseTableSchema(sqlText)

  override def parseDataType(sqlText: String): DataType = delegate.parseDataType(sqlText)
}

private object ChangelogParser {
  private val Prefix =
    """(?is)\s*EXPLAIN\s+CHANGELOG(?:\s+(VERBOSE)|\s+FORMAT\s+(TEXT|JSON|HTML|SVG))?\s+(.*)""".r
  private val Running = """(?is)QUERY\s+'((?:[^']|'')*)'\s*;?\s*""".r
}
