// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.parser.{CatalystSqlParser, ParseException}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.SparkParserUtils.unescapeSQLString

/**
 * A parsed statement: gives access to its keywords and to the values of its slots.
 *
 * @param spark
 *   Spark's parser
 * @param error
 *   creates a syntax error, from the number of a token and the expected parts
 */
private[parser] final class ReadStatement(
    tokens: SqlTokens,
    found: Syntax.Found,
    spark: String => LogicalPlan,
    error: (Int, Seq[String]) => AnalysisException) {

  def has(part: String): Boolean = found.parts.contains(part)

  /** Returns the value of an optional slot. */
  def optional[A](slot: String, value: String => A): Option[A] =
    Option.when(has(slot))(value(slot))

  /** Returns the text of a keyword or slot. */
  def textOf(part: String): String = {
    val (first, end) = found.parts(part)
    val until = if (end == Syntax.AllRead) tokens.text.length else tokens(end - 1).end
    tokens.text.substring(tokens(first).start, until)
  }

  /** Returns the names of columns in parentheses. */
  def columns(slot: String): Seq[String] = {
    def refused = error(found.parts(slot)._1, Seq("columns in parentheses"))
    try
      CatalystSqlParser.parseExpression(s"array${textOf(slot)}").children.map {
        case UnresolvedAttribute(Seq(column)) => column
        case _ => throw refused
      }
    catch { case _: ParseException => throw refused }
  }

  /** Returns the text from the token after a keyword or slot on. */
  def textAfter(part: String): String =
    tokens.text.substring(tokens(found.parts(part)._2).start)

  /** Returns the parts of a name. */
  def name(slot: String): Seq[String] = {
    val (first, end) = found.parts(slot)
    if (tokens.isSymbol(end - 1, ')')) throw error(first, Seq("a name"))
    (first until end by 2).map { number =>
      val text = tokens.textOf(number)
      if (text.startsWith("`")) text.substring(1, text.length - 1).replace("``", "`") else text
    }
  }

  /** Returns a name of one part, without characters that are special in a path. */
  def word(slot: String): String = {
    val parts = name(slot)
    val first = found.parts(slot)._1
    if (parts.size > 1) throw error(first + 1, Seq("a name of one part"))
    if (parts.head.isEmpty || !parts.head.forall(c => c.isLetterOrDigit || c == '_')) {
      throw error(first, Seq("a name of letters, digits and underscores"))
    }
    parts.head
  }

  /** Returns a quoted text without quotes and escapes. */
  def text(slot: String): String = {
    val (first, end) = found.parts(slot)
    if (tokens(first).kind != SqlTokens.Text) throw error(first, Seq("a text in quotes"))
    (first until end)
      .map(tokens.textOf)
      .map { text =>
        val tag = if (text.startsWith("$")) text.indexOf('$', 1) + 1 else 0
        if (tag > 0) text.substring(tag, text.length - tag) else unescapeSQLString(text)
      }
      .mkString
  }

  def whole(slot: String, mostDigits: Int): Long = {
    val text = textOf(slot)
    if (text.length > mostDigits || !text.forall(_.isDigit)) {
      throw error(found.parts(slot)._1, Seq(s"a whole number of at most $mostDigits digits"))
    }
    text.toLong
  }

  /** Parses the statement from a keyword on by Spark's parser, with blanks in place of some parts. */
  def without(keyword: String, ranges: (String, String)*): LogicalPlan = {
    val chars = tokens.text.toCharArray
    def blank(from: Int, until: Int): Unit =
      for (at <- from until until if chars(at) != '\n') chars(at) = ' '
    val before = found.parts(keyword)._1
    if (before > 0) blank(0, tokens(before).start)
    for ((first, last) <- ranges if has(first)) {
      blank(tokens(found.parts(first)._1).start, tokens(found.parts(last)._2 - 1).end)
    }
    spark(new String(chars))
  }

  /** Parses the statement from a slot to the end by Spark's parser, after the words `before`. */
  def rest(slot: String, before: String = ""): LogicalPlan =
    from(found.parts(slot)._1, before, tokens.text.length)

  /** Parses the text after a slot by Spark's parser, after the words `before`. */
  def after(slot: String, before: String): LogicalPlan =
    from(found.parts(slot)._2, before, tokens.text.length)

  /**
   * Parses the statement from a slot to the end by Spark's parser. Parentheses prevent a further
   * clause.
   */
  def enclosed(slot: String, before: String): LogicalPlan = {
    val first = found.parts(slot)._1
    val end = Iterator.from(first).find(tokens(_).kind == SqlTokens.End).get
    var depth = 0
    for (number <- first until end) {
      if (tokens.isSymbol(number, '(')) depth += 1
      if (tokens.isSymbol(number, ')')) depth -= 1
      if (depth < 0) throw error(number, Seq(Syntax.EndOfStatement))
    }
    val last = (end - 1 to first by -1).find(!tokens.isSymbol(_, ';')).get
    from(first, s"$before (", tokens(last).end, ")")
  }

  /**
   * Keeps line and position of the parsed text if `before` fits in front. Errors then point to
   * the original text.
   */
  private def from(number: Int, before: String, until: Int, after: String = ""): LogicalPlan = {
    val start = tokens(number).start
    val blank = tokens.text.take(start).map(char => if (char == '\n') char else ' ')
    val room = start - before.length - 1
    val head =
      if (room >= 0 && blank.indexOf('\n', room) < 0) s"${blank.take(room)}$before "
      else s"$before $blank"
    spark(head + tokens.text.substring(start, until) + after)
  }
}
