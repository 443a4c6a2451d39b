// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.{AnalysisException, Row, SparkSession}

import org.apache.spark.sql.changelog.compat.DelegatingParser

/**
 * Reads the statements that [[Statement]] lists. All other statements go unchanged to Spark's parser and those of other
 * extensions, as do the queries and conditions within ours.
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
 * Raises the error of a statement when the statement is run, not when it is parsed. Delta's parser, which may come
 * before ours, takes an analysis error for one of its own and loses it.
 */
case class RefusedStatement()(error: AnalysisException) extends LeafRunnableCommand {
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(error)

  override def run(session: SparkSession): Seq[Row] = throw error
}
