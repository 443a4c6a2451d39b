// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import org.apache.spark.sql.catalyst.parser.ParseException

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.functions.VersionsOfFunction

/**
 * The SQL standard's temporal join, by Spark's own grammar.
 *
 * {{{
 *   JOIN rates FOR SYSTEM_TIME AS OF o.at r
 *   JOIN LATERAL versions_of(TABLE(rates), o.at) r
 * }}}
 *
 * Spark's parser accepts the clause with constants, for time travel. Only a text that Spark's parser rejects is
 * rewritten, so that time travel is untouched.
 */
private[parser] object SystemTime {
  private val Clause = Seq("FOR", "SYSTEM_TIME", "AS", "OF")
  private val SyntaxError = "PARSE_SYNTAX_ERROR"

  /** Parses a text by Spark's parser, with temporal joins. */
  def parse[A](sqlText: String, spark: String => A): A =
    try spark(sqlText)
    catch { case error: ParseException => again(sqlText, spark, error) }

  private def again[A](sqlText: String, spark: String => A, first: ParseException): A = {
    val (lateral, clauses) = rewritten(sqlText)
    if (clauses.isEmpty) throw first
    try spark(lateral)
    catch {
      case error: ParseException if error.getCondition == SyntaxError =>
        if (first.getCondition == SyntaxError) throw first
        throw refused(
          clauses.head,
          "the time is a column, or an expression in parentheses, as in AS OF (o.at + INTERVAL 1 DAY)")
      case error: ParseException if error.getCondition.contains("JOIN") =>
        throw refused(
          clauses.head,
          "the join is an inner or left join with ON, and the table its right side")
    }
  }

  private def refused(clause: String, expected: String) =
    analysis("CHANGELOG_SYSTEM_TIME", "clause" -> clause, "expected" -> expected)

  /** Returns the text with lateral joins, and the replaced clauses. */
  private def rewritten(sqlText: String): (String, Seq[String]) = {
    val tokens = new SqlTokens(sqlText)
    import tokens.{isName, isWord}
    val text = new StringBuilder
    var copied = 0
    val clauses = Seq.newBuilder[String]
    val ends = Iterator.from(0).takeWhile(number => tokens(number).kind != SqlTokens.End)
    ends.filter(at => at > 1 && Clause.indices.forall(i => isWord(at + i, Clause(i)))).foreach {
      at =>
        val time = at + Clause.size
        val first = tokens.startOfName(at - 1)
        val end = endOfTime(tokens, time)
        val isJoined = first > 0 && (isWord(first - 1, "JOIN") || tokens.isSymbol(first - 1, ','))
        if (isJoined && isName(at - 1) && end > time) {
          val (name, last) = (tokens(first).start, tokens(end - 1).end)
          val table = sqlText.substring(name, tokens(at - 1).end)
          val value = sqlText.substring(tokens(time).start, last)
          text ++= sqlText.substring(copied, name)
          text ++= s"LATERAL ${VersionsOfFunction.Name}(TABLE($table), $value)"
          clauses += sqlText.substring(name, last)
          copied = last
        }
    }
    (text.toString + sqlText.substring(copied), clauses.result())
  }

  /** Returns the number of the token after a column or parentheses; `first` for anything else, such as a constant. */
  private def endOfTime(tokens: SqlTokens, first: Int): Int =
    if (tokens.isSymbol(first, '(')) tokens.afterParentheses(first).getOrElse(first)
    else if (!tokens.isName(first)) first
    else {
      var end = first + 1
      while (tokens.isSymbol(end, '.') && tokens.isName(end + 1)) end += 2
      if (tokens.isSymbol(end, '(') || tokens(end).kind == SqlTokens.Text) first else end
    }
}
