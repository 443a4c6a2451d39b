// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.{ParameterContext, ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.{FunctionIdentifier, TableIdentifier}
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.analysis.StateTtlHint

/**
 * Understands `EXPLAIN CHANGELOG [FORMAT TEXT | FORMAT JSON] query`, and the hint `STATE_TTL` as
 * Flink writes it, and hands everything else, the query included, to Spark's parser.
 */
class ExplainChangelogParser(delegate: ParserInterface) extends ParserInterface {
  import ExplainChangelogParser._

  override def parsePlan(sqlText: String): LogicalPlan = sqlText match {
    case Prefix(format, query) => explain(format, withHints(query, delegate.parsePlan))
    case _ => withHints(sqlText, delegate.parsePlan)
  }

  override def parsePlanWithParameters(
      sqlText: String,
      parameterContext: ParameterContext): LogicalPlan = sqlText match {
    case Prefix(format, query) =>
      explain(format, withHints(query, delegate.parsePlanWithParameters(_, parameterContext)))
    case _ => withHints(sqlText, delegate.parsePlanWithParameters(_, parameterContext))
  }

  override def parseQuery(sqlText: String): LogicalPlan =
    withHints(sqlText, delegate.parseQuery)

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

  /** What Spark can't parse for how a hint of ours is written is given to it as it writes it. */
  private def withHints(sqlText: String, parse: String => LogicalPlan): LogicalPlan =
    try parse(sqlText)
    catch {
      case error: ParseException =>
        StateTtlHint.inSparkGrammar(sqlText).map(parse).getOrElse(throw error)
    }

  private def explain(format: String, query: LogicalPlan): LogicalPlan =
    ExplainChangelogCommand(query, asJson = "JSON".equalsIgnoreCase(format))
}

private object ExplainChangelogParser {
  private val Prefix = """(?is)\s*EXPLAIN\s+CHANGELOG(?:\s+FORMAT\s+(TEXT|JSON))?\s+(.*)""".r
}
