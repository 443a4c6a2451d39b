// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.SparkParserUtils.unescapeSQLString

import org.apache.spark.sql.changelog.compat.DelegatingParser
import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.evolution.{EvolveCheckpoint, RescaleCheckpoint}
import org.apache.spark.sql.changelog.explain.dryrun.{DryRunCommand, Sample}
import org.apache.spark.sql.changelog.explain.lineage.WhyCommand
import org.apache.spark.sql.changelog.explain.{
  ExplainChangelogCommand,
  ExplainFormat,
  ExplainQueryCommand
}
import org.apache.spark.sql.changelog.views.{ResolveViewStatements, ViewStatement}

/**
 * Understands `EXPLAIN CHANGELOG [VERBOSE | FORMAT …] query`, the same with `QUERY 'name'` for one that
 * runs and with `DRY RUN OVER …` for a sample, `EVOLVE CHECKPOINT`, `RESCALE CHECKPOINT`, `WHY query` and
 * statements about savepoints and views, and hands everything else, the queries included, to Spark's parser.
 */
class ChangelogParser(spark: ParserInterface) extends DelegatingParser(spark) {
  import ChangelogParser._

  private val views = new ViewStatement(spark)
  private val savepoints = new SavepointStatement(spark)

  override protected def parse(sqlText: String, spark: String => LogicalPlan): LogicalPlan =
    try
      views(sqlText, spark).orElse(savepoints(sqlText)).getOrElse {
        sqlText match {
          case Prefix(verbose, form, query) =>
            val format = ExplainFormat(Seq(verbose, form, "TEXT").find(_ != null).get)
            query match {
              case Running(name) => ExplainQueryCommand(name.replace("''", "'"), format)
              case DryRun(text, count, query) =>
                val sample =
                  if (count != null) Sample.FirstRows(count.toInt)
                  else Sample.Changes(unescapeSQLString(text))
                DryRunCommand(spark(query), sample, format)
              case _ => ExplainChangelogCommand(spark(query), format)
            }
          case Evolve(from, into, target, query) =>
            evolve(from, Some(into), Option(target), spark(query))
          case Rescale(from, into, partitions) =>
            RescaleCheckpoint(unescapeSQLString(from), unescapeSQLString(into), partitions.toInt)
          case Why(query) => WhyCommand(spark(query))
          case ExplainEvolve(from, query) => evolve(from, None, None, spark(query))
          case _ => ResolveViewStatements.parsed(spark(sqlText))
        }
      }
    catch {
      case error: ParseException =>
        NearestStatement(sqlText) match {
          case Some(syntax) =>
            val begun = NearestStatement.wordsOf(sqlText).mkString(" ")
            RefusedStatement()(ChangelogErrors.statementUnknown(begun, syntax))
          case None => throw error
        }
      case error: AnalysisException => RefusedStatement()(error)
    }

  private def evolve(
      from: String,
      into: Option[String],
      target: Option[String],
      query: LogicalPlan): LogicalPlan =
    EvolveCheckpoint(
      unescapeSQLString(from),
      into.map(unescapeSQLString(_)),
      target.map(parseMultipartIdentifier),
      query)
}

private[parser] object ChangelogParser {

  /** A quoted text, as a group; it is found in few steps however long it is. */
  val Text: String =
    """('[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+'|"[^"\\]*+(?:(?:\\.|"")[^"\\]*+)*+")"""
  private val Evolve =
    s"""(?is)\\s*EVOLVE\\s+CHECKPOINT\\s+$Text\\s+INTO\\s+$Text(?:\\s+TARGET\\s+(\\S+))?\\s+AS\\s+(.*)""".r
  private val ExplainEvolve =
    s"""(?is)\\s*EXPLAIN\\s+EVOLVE\\s+CHECKPOINT\\s+$Text\\s+AS\\s+(.*)""".r
  private val Rescale =
    s"""(?is)\\s*RESCALE\\s+CHECKPOINT\\s+$Text\\s+INTO\\s+$Text\\s+PARTITIONS\\s+(\\d{1,9})\\s*;?\\s*""".r
  private val Why = """(?is)\s*WHY\s+((?:SELECT|WITH|FROM|TABLE|VALUES)\b.*|\(.*)""".r
  private val Prefix =
    """(?is)\s*EXPLAIN\s+CHANGELOG(?:\s+(VERBOSE)|\s+FORMAT\s+(TEXT|JSON|HTML|SVG))?\s+(.*)""".r
  private val DryRun =
    s"""(?is)DRY\\s+RUN\\s+OVER\\s+(?:$Text|(\\d{1,6})\\s+ROWS?)\\s+(.*)""".r
  private val Running = """(?is)QUERY\s+'((?:[^']++|'')*+)'\s*;?\s*""".r
}
