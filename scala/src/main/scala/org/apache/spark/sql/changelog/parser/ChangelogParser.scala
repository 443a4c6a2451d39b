// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

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
class ChangelogParser(spark: ParserInterface) extends DelegatingParser(spark) {
  import ChangelogParser._

  private val views = new ViewStatement(spark)

  override protected def parse(sqlText: String, spark: String => LogicalPlan): LogicalPlan =
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

}

private object ChangelogParser {
  private val Prefix =
    """(?is)\s*EXPLAIN\s+CHANGELOG(?:\s+(VERBOSE)|\s+FORMAT\s+(TEXT|JSON|HTML|SVG))?\s+(.*)""".r
  private val Running = """(?is)QUERY\s+'((?:[^']|'')*)'\s*;?\s*""".r
}
