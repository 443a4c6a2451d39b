// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.parser.ParseException

import org.apache.spark.sql.changelog.functions.FunctionArguments

/**
 * The SQL table function `match_recognize`: the matches of a row pattern, as in the SQL standard.
 *
 * {{{
 *   SELECT * FROM match_recognize(TABLE(t), 'PARTITION BY … ORDER BY … MEASURES … PATTERN (…) DEFINE …')
 *   SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY … ORDER BY … MEASURES … PATTERN (…) DEFINE …)
 * }}}
 *
 * The matches of a partition depend on its rows only. The plan has Spark's nodes: an aggregate lists the rows of each
 * partition, [[MatchRows]] finds the matches in the list, and a generator returns a row for each.
 */
object MatchRecognizeFunction {
  val Name = "match_recognize"
  private val BeforeTables = Seq("FROM", "JOIN", "LATERAL")

  val description: FunctionArguments.Description =
    FunctionArguments.describe(Name, "Returns the matches of a row pattern") { expressions =>
      val arguments = new FunctionArguments(Name, Seq("clauses"), expressions)
      val clauses = arguments.text("clauses").getOrElse {
        throw arguments.invalid("clauses", "NULL", "the clauses of MATCH_RECOGNIZE are expected")
      }
      new MatchRecognize(arguments.source, new RowPatternReader(clauses)()).plan
    }

  /** Parses a text by Spark's parser, with the standard's clause. */
  private[parser] def parse[A](sqlText: String, spark: String => A): A =
    try spark(sqlText)
    catch {
      case error: ParseException =>
        val text = rewritten(sqlText)
        if (text == sqlText) throw error
        spark(text)
    }

  /** Returns the text with calls of the function in place of clauses. */
  private def rewritten(sqlText: String): String = {
    val tokens = new SqlTokens(sqlText)
    val found = Iterator
      .from(1)
      .takeWhile(at => tokens(at).kind != SqlTokens.End)
      .find { at =>
        tokens.isWord(at, Name) && tokens.isSymbol(at + 1, '(') &&
        (tokens.isSymbol(at - 1, ')') || isName(tokens, at - 1))
      }
    val call = for {
      at <- found
      first = startOfTable(tokens, at - 1)
      after <- tokens.afterParentheses(at + 1)
    } yield {
      val table = sqlText.substring(tokens(first).start, tokens(at - 1).end)
      val clauses = sqlText.substring(tokens(at + 1).end, tokens(after - 1).start)
      // as bytes, because a setting decides about the escapes of a text
      val bytes = Literal(clauses.getBytes(UTF_8)).sql
      val before = sqlText.substring(0, tokens(first).start)
      val rest = sqlText.substring(tokens(after - 1).end)
      rewritten(s"$before$Name(TABLE(SELECT * FROM $table), CAST($bytes AS STRING))$rest")
    }
    call.getOrElse(sqlText)
  }

  /** Returns the first token of a name, a call or a query in parentheses. */
  private def startOfTable(tokens: SqlTokens, last: Int): Int = {
    var first = last
    if (tokens.isSymbol(last, ')')) {
      var depth = 1
      while (depth > 0 && first > 0) {
        first -= 1
        if (tokens.isSymbol(first, ')')) depth += 1
        if (tokens.isSymbol(first, '(')) depth -= 1
      }
      if (first > 0 && isName(tokens, first - 1)) first -= 1
    }
    tokens.startOfName(first)
  }

  private def isName(tokens: SqlTokens, at: Int): Boolean =
    tokens.isName(at) && !BeforeTables.exists(tokens.isWord(at, _))
}
