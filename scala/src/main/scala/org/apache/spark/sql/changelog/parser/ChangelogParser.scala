// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.{AnalysisException, Row, SparkSession}

import org.apache.spark.sql.changelog.compat.DelegatingParser

/**
 * Parses the statements listed in [[Statement]]. Further statements go unchanged to Spark's
 * parser, and to the parsers of further extensions. Spark's parser also reads the queries and
 * conditions within our statements.
 */
class ChangelogParser(spark: ParserInterface) extends DelegatingParser(spark) {
  override protected def parse(sqlText: String, spark: String => LogicalPlan): LogicalPlan = {
    val ours = new StatementParser(sqlText, spark)
    try
      ours().getOrElse {
        try spark(sqlText)
        catch { case error: ParseException => throw ours.meant.getOrElse(error) }
      }
    catch {
      case error: ParseException => throw error
      case error: AnalysisException => RefusedStatement()(error)
    }
  }
}

/**
 * Raises the error of a statement when the statement runs, instead of during parsing. Delta's
 * parser, which may come before ours, mistakes an analysis error for its own and hides the error.
 */
case class RefusedStatement()(error: AnalysisException) extends LeafRunnableCommand {
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(error)

  override def run(session: SparkSession): Seq[Row] = throw error
}
