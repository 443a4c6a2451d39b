// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import scala.jdk.CollectionConverters._
import scala.util.Random

import org.antlr.v4.runtime.{CharStreams, Token}
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.parser.SqlBaseLexer

/** Texts are cut into the tokens that Spark's lexer cuts them into. */
class SqlTokensSuite extends AnyFunSuite {

  private def tokens(sql: String): Seq[SqlToken] = {
    val tokens = new SqlTokens(sql)
    Iterator.from(0).map(tokens(_)).takeWhile(_.kind != SqlTokens.End).toSeq
  }

  private def texts(sql: String): Seq[String] =
    tokens(sql).map(token => sql.substring(token.start, token.end))

  test("names, texts, numbers, symbols and comments") {
    assert(
      texts("a.`b``c`(1, 2.5,'it''s \\'' , r'\\' ,\"x\\\"\"\"\")--end") == Seq(
        "a",
        ".",
        "`b``c`",
        "(",
        "1",
        ",",
        "2.5",
        ",",
        "'it''s \\''",
        ",",
        "r'\\'",
        ",",
        "\"x\\\"\"\"\"",
        ")"))
    assert(
      texts("a/* x /* y */ ' */b -- c\\\n d\ne /*+ f */") == Seq(
        "a",
        "b",
        "e",
        "/",
        "*",
        "+",
        "f",
        "*/"))
    assert(texts("$$a'$$ $t$ $$ $t$ $ 1a") == Seq("$$a'$$", "$t$ $$ $t$", "$", "1a"))
    assert(tokens("a 'b").last == SqlToken(SqlTokens.Unclosed, 2, 4))
    assert(tokens("a /* /* */ b").last == SqlToken(SqlTokens.Unclosed, 2, 12))
    assert(texts("\u00a0a\u2003b\u3000") == Seq("a", "b"))
  }

  private val pieces = Seq(
    "A",
    "R",
    "_X",
    "1A",
    "'",
    "'",
    "''",
    "\"",
    "\"\"",
    "`",
    "``",
    "\\",
    "\\'",
    "--",
    "\n",
    "\\\n",
    "\r",
    "/*",
    "/*",
    "/*+",
    "*/",
    "*/",
    " ",
    "\u00a0",
    "$$",
    "$T$",
    "(",
    ")",
    ",",
    ";")

  /** The tokens of Spark's lexer that are words or quoted; the parts of a text between dollars are one. */
  private def ofSpark(sql: String): Seq[(Int, Int)] = {
    val lexer = new SqlBaseLexer(CharStreams.fromString(sql))
    lexer.removeErrorListeners()
    val all = lexer.getAllTokens.asScala.filter(_.getChannel == Token.DEFAULT_CHANNEL).toSeq
    def named(token: Token, name: String) =
      lexer.getVocabulary.getSymbolicName(token.getType).startsWith(name)
    val merged = all.foldLeft(Vector.empty[(Token, Token)]) { (found, token) =>
      if (named(token, "DOLLAR_QUOTED") || named(token, "END_DOLLAR"))
        found.init :+ (found.last._1 -> token)
      else found :+ (token -> token)
    }
    merged
      .filter { case (first, _) =>
        isShown(sql.charAt(first.getStartIndex)) && !named(first, "UNREC")
      }
      .map { case (first, last) => first.getStartIndex -> (last.getStopIndex + 1) }
  }

  private def isShown(first: Char): Boolean =
    Character.isLetterOrDigit(first) || "_'\"`$".contains(first)

  test("random texts are cut as Spark's lexer cuts them") {
    val random = new Random(1)
    val hasDollars = new SqlBaseLexer(CharStreams.fromString("")).getVocabulary
    val known =
      if ((1 to hasDollars.getMaxTokenType).exists(n =>
          s"${hasDollars.getSymbolicName(n)}".startsWith("BEGIN_DOLLAR"))) pieces
      else pieces.filterNot(_.startsWith("$"))
    for (number <- 1 to 20000) {
      val sql = Seq.fill(1 + random.nextInt(12))(known(random.nextInt(known.size))).mkString
      val ours = tokens(sql)
      val whole = ours.takeWhile(_.kind != SqlTokens.Unclosed)
      val shown =
        whole.filter(token => isShown(sql.charAt(token.start)) && token.kind != SqlTokens.Symbol)
      val stock =
        ofSpark(sql).filter(span => whole.size == ours.size || span._1 < ours(whole.size).start)
      assert(shown.map(token => token.start -> token.end) == stock, s"$number: $sql")
    }
  }
}
