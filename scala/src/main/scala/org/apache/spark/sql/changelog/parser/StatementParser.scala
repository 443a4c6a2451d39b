// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import java.util.Locale

import org.apache.commons.text.similarity.LevenshteinDistance

import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.{AnalysisException, Row, SparkSession}

import org.apache.spark.sql.changelog.compat.DelegatingParser
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.views.ResolveViewStatements

/**
 * Parses one text if the text is a statement of this project. For other texts only the first
 * words are read.
 *
 * @param spark
 *   Spark's parser, with the parameters of the statement
 */
private[parser] final class StatementParser(sqlText: String, spark: String => LogicalPlan) {
  import StatementParser._

  private val tokens = new SqlTokens(sqlText)

  private val words: Seq[String] = (0 until MostWords).view
    .takeWhile(number => isWord(number))
    .map(tokens.textOf(_).toUpperCase(Locale.ROOT))
    .toIndexedSeq

  private def isWord(number: Int): Boolean =
    tokens(number).kind == SqlTokens.Word || tokens.isSymbol(number, '(')

  /** Returns the plan of the text, if the text is a statement of this project. */
  def apply(): Option[LogicalPlan] = {
    val begun = words.headOption.toSeq.flatMap(byVerb).collect {
      case (head, statement) if words.startsWith(head) && !isFlowOfRows => statement
    }
    if (begun.isEmpty && !isFlowOfRows) nearest.foreach { case (head, statement) =>
      val at = head.indices.find(number => words(number) != head(number)).get
      throw error(at, Seq(head(at)), statement)
    }
    Option.when(begun.nonEmpty && !isLeftToPipeline)(read(begun.distinct))
  }

  /**
   * Returns the error for a text rejected by every parser, if only this extension has its verb.
   */
  def meant: Option[AnalysisException] =
    Option.when(OwnVerbs.exists(words.startsWith(_))) {
      val known = byVerb(words.head).map(_._2).distinct
      val reader = new SyntaxReader(tokens, isQuery = false)
      known.foreach(statement => reader.read(statement.parsed))
      val like = known.maxBy(_.heads.map(_.count(words.contains)).max)
      error(reader.failedAt, reader.expected.toSeq, like)
    }

  /** Whether the text begins as `CREATE FLOW f AS INSERT`, which is Spark's. */
  private def isFlowOfRows: Boolean = words.startsWith(Flow) &&
    (Flow.size to MostWordsOfFlow).exists { number =>
      tokens.textOf(number).equalsIgnoreCase("AS") &&
      tokens.textOf(number + 1).equalsIgnoreCase("INSERT")
    }

  private def isLeftToPipeline: Boolean =
    words.head == "CREATE" && Kinds(words(1)) && ResolveViewStatements.isInPipeline

  private def read(statements: Seq[Statement]): LogicalPlan = {
    val reader = new SyntaxReader(tokens)
    val read = statements.map { statement =>
      val before = reader.failedAt
      (statement, reader.read(statement.parsed), reader.failedAt > before)
    }
    read
      .collectFirst { case (statement, Some(found), _) =>
        statement.plan(new ReadStatement(tokens, found, spark, error(_, _, statement)))
      }
      .getOrElse {
        throw error(
          reader.failedAt,
          reader.expected.toSeq,
          read.findLast(_._3).getOrElse(read.head)._1)
      }
  }

  /**
   * Returns the head most similar to the first words of the text, if they may be a misspelling.
   */
  private def nearest: Option[(Seq[String], Statement)] = bySecond
    .collect { case (second, heads) if words.size > 1 && letters(words(1), second) >= 0 => heads }
    .flatten
    .filter(words.size >= _._1.size)
    .map { case (head, statement) =>
      val wrong = head.zip(words).map { case (wanted, word) => letters(word, wanted) }
      (wrong, head -> statement)
    }
    .filter { case (wrong, _) =>
      !wrong.contains(-1) && wrong.count(_ > 0) <= (wrong.size + 1) / 2
    }
    .minByOption(_._1.sum)
    .map(_._2)

  private def error(at: Int, expected: Seq[String], statement: Statement): AnalysisException = {
    val isAtEnd = tokens(at).kind == SqlTokens.End
    val start = if (isAtEnd && at > 0) tokens(at - 1).end else tokens(at).start
    val line = sqlText.lastIndexOf('\n', start - 1) + 1
    val shown = sqlText.substring(math.max(line, start - MostShown), start)
    val after = sqlText.substring(start).takeWhile(char => char != '\n' && char != '\r')
    val kind = if (words.exists(StreamingWords)) "STREAMING TABLE" else "MATERIALIZED VIEW"
    analysis(
      "CHANGELOG_SYNTAX_ERROR",
      "expected" -> (if (expected.size < 2) expected.mkString
                     else expected.init.mkString(", ") + " or " + expected.last),
      "found" -> (if (isAtEnd) Syntax.EndOfStatement else tokens.textOf(at).take(MostShown)),
      "line" -> (sqlText.substring(0, start).count(_ == '\n') + 1),
      "position" -> (start - line),
      "excerpt" -> s"$shown${after.take(MostShown)}\n${"-" * shown.length}^^^",
      "syntax" -> statement.syntax.replace("KINDS", s"${kind}S").replace("KIND", kind))
  }
}

private object StatementParser {
  private val heads: Seq[(Seq[String], Statement)] =
    Statement.all.flatMap(statement => statement.heads.map(_ -> statement))
  private val byVerb = heads.groupBy(_._1.head).withDefaultValue(Nil)
  private val bySecond = heads.groupBy(_._1(1)).toSeq
  private val MostWords = heads.map(_._1.size).max

  /** First words unused by Spark and by common table formats. */
  private val OwnVerbs =
    "VERIFY|WHY|COMPARE|RESCALE|EVOLVE|FORK|START|STOP|REFRESH VIEW|RESTORE VIEW"
      .split('|')
      .map(_.split(' ').toSeq)

  private val Flow = Seq("CREATE", "FLOW")
  private val MostWordsOfFlow = 12

  private val Kinds = Set("MATERIALIZED", "STREAMING", "FLOW")
  private val StreamingWords = Set("STREAMING", "TABLE", "TABLES")

  private val Mistake = new LevenshteinDistance(2)

  /** Returns the edit distance of a word to a keyword; -1 if the word is no misspelling of it. */
  private def letters(word: String, wanted: String): Int =
    if (word == wanted) 0
    else if (wanted.length < 4 || math.abs(word.length - wanted.length) > 2) -1
    else Mistake(word, wanted)

  private val MostShown = 60
}

/**
 * Parses the statements listed in [[Statement]]. Further statements go unchanged to Spark's
 * parser, and to the parsers of further extensions. Spark's parser also reads the queries and
 * conditions within our statements.
 */
class ChangelogParser(spark: ParserInterface) extends DelegatingParser(spark) {
  override protected def parse(sqlText: String, spark: String => LogicalPlan): LogicalPlan = {
    val parsed = MatchRecognizeFunction.parse(_: String, SystemTime.parse(_, spark))
    val ours = new StatementParser(sqlText, parsed)
    try
      ours().getOrElse {
        try parsed(sqlText)
        catch { case error: ParseException => throw ours.meant.getOrElse(error) }
      }
    catch {
      case error: ParseException => throw error
      case error: AnalysisException => RefusedStatement()(error)
    }
  }

  override def parseQuery(sqlText: String): LogicalPlan =
    MatchRecognizeFunction.parse(sqlText, SystemTime.parse(_, super.parseQuery))
}

/**
 * Raises the error of a statement when the statement runs, instead of during parsing. Delta's
 * parser, which may come before ours, mistakes an analysis error for its own and hides the error.
 */
case class RefusedStatement()(error: AnalysisException) extends LeafRunnableCommand {
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(error)

  override def run(session: SparkSession): Seq[Row] = throw error
}
