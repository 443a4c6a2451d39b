// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import scala.annotation.tailrec
import scala.collection.mutable

/** The tokens of a SQL text, by the rules of Spark's lexer. A token is scanned when it is first asked for. */
private[parser] final class SqlTokens(val text: String) {
  import SqlTokens._

  private val read = mutable.ArrayBuffer.empty[SqlToken]

  /** Returns a token by its number. After the last token, returns a token of kind `End`. */
  def apply(number: Int): SqlToken = {
    while (read.size <= number) read += next(if (read.isEmpty) 0 else read.last.end)
    read(number)
  }

  def textOf(number: Int): String = text.substring(apply(number).start, apply(number).end)

  def isSymbol(number: Int, symbol: Char): Boolean =
    apply(number).kind == Symbol && text.charAt(apply(number).start) == symbol

  def isWord(number: Int, word: String): Boolean = {
    val token = apply(number)
    token.kind == Word && token.end - token.start == word.length &&
    text.regionMatches(true, token.start, word, 0, word.length)
  }

  def isName(number: Int): Boolean =
    apply(number).kind == Word || apply(number).kind == QuotedName

  /** Returns the first part of the name `a.b.c` that ends at `last`. */
  def startOfName(last: Int): Int = {
    var first = last
    while (first > 1 && isSymbol(first - 1, '.') && isName(first - 2)) first -= 2
    first
  }

  /** Returns the first token outside parentheses and brackets that `ends` accepts, or the end of the text. */
  def outside(first: Int)(ends: Int => Boolean): Int = {
    var depth = 0
    var at = first
    while (apply(at).kind != End && (depth > 0 || !ends(at))) {
      if (isSymbol(at, '(') || isSymbol(at, '[')) depth += 1
      if (isSymbol(at, ')') || isSymbol(at, ']')) depth -= 1
      at += 1
    }
    at
  }

  /** Returns the token after the parentheses that open at `first`, if they are closed. */
  def afterParentheses(first: Int): Option[Int] = {
    val closing = outside(first + 1)(isSymbol(_, ')'))
    Option.when(apply(closing).kind != End)(closing + 1)
  }

  private def next(from: Int): SqlToken = {
    val start = skip(from)
    val first = at(start)
    val tag = if (first == '$') endOf(start + 1, isLetter) else start
    if (start == text.length) SqlToken(End, start, start)
    else if (opensComment(start)) SqlToken(Unclosed, start, text.length)
    else if (first == '`') quoted(QuotedName, start, afterQuote(start))
    else if (isQuote(first)) quoted(Text, start, afterQuote(start))
    else if ((first == 'r' || first == 'R') && isQuote(at(start + 1))) {
      quoted(Text, start, after(text.substring(start + 1, start + 2), start + 2))
    } else if (isWordPart(first)) word(start, endOf(start, isWordPart))
    else if (tag > start && at(tag) == '$') {
      quoted(Text, start, after(text.substring(start, tag + 1), tag + 1))
    } else SqlToken(Symbol, start, start + (if (text.startsWith("*/", start)) 2 else 1))
  }

  private def quoted(kind: Kind, start: Int, end: Int): SqlToken =
    if (end < 0) SqlToken(Unclosed, start, text.length) else SqlToken(kind, start, end)

  private def word(start: Int, end: Int): SqlToken =
    if (endOf(start, isDigit) < end) SqlToken(Word, start, end)
    else if (at(end) == '.' && isDigit(at(end + 1))) {
      SqlToken(Number, start, endOf(end + 1, isDigit))
    } else SqlToken(Number, start, end)

  /** Returns the position after the blanks and comments at a position. */
  @tailrec private def skip(from: Int): Int =
    if (isBlank(at(from))) skip(endOf(from, isBlank))
    else if (text.startsWith("--", from)) skip(endOfLine(from))
    else if (opensComment(from)) {
      val end = afterComment(from)
      if (end < 0) from else skip(end)
    } else from

  /** Returns the end of a comment's line; a backslash before the end of a line continues the comment. */
  @tailrec private def endOfLine(from: Int): Int = {
    val end = endOf(from, char => char != '\n' && char != '\r')
    if (at(end) == '\n' && text.charAt(end - 1) == '\\') endOfLine(end + 1) else end
  }

  private def opensComment(from: Int): Boolean =
    text.startsWith("/*", from) && at(from + 2) != '+' // `/*+` begins a hint.

  /**
   * Returns the position after a comment, which may contain nested comments; -1 for an unclosed
   * comment.
   */
  private def afterComment(start: Int): Int = {
    var depth = 1
    var from = start + 2
    while (depth > 0 && from < text.length) {
      val step = if (text.startsWith("*/", from)) -1 else if (opensComment(from)) 1 else 0
      depth += step
      from += (if (step == 0) 1 else 2)
    }
    if (depth > 0) -1 else from
  }

  /**
   * Returns the position after a quoted text, with doubled quotes as escapes; -1 for an unclosed
   * text.
   */
  private def afterQuote(start: Int): Int = {
    val quote = text.charAt(start)
    var from = start + 1
    while (from < text.length && (text.charAt(from) != quote || at(from + 1) == quote)) {
      from += (if (text.charAt(from) == quote || quote != '`' && text.charAt(from) == '\\') 2
               else 1)
    }
    if (from < text.length) from + 1 else -1
  }

  private def after(closing: String, from: Int): Int = {
    val found = text.indexOf(closing, from)
    if (found < 0) -1 else found + closing.length
  }

  private def endOf(from: Int, isIn: Char => Boolean): Int = {
    var end = from
    while (end < text.length && isIn(text.charAt(end))) end += 1
    end
  }

  private def at(position: Int): Char =
    if (position < text.length) text.charAt(position) else NoChar
}

/** A token from `start` up to `end`. */
private[parser] final case class SqlToken(kind: SqlTokens.Kind, start: Int, end: Int)

private[parser] object SqlTokens {
  sealed trait Kind
  case object Word extends Kind
  case object QuotedName extends Kind
  case object Text extends Kind
  case object Number extends Kind
  case object Symbol extends Kind

  /** A quoted text or a comment without an end. */
  case object Unclosed extends Kind
  case object End extends Kind

  private val NoChar = '\u0000'

  private def isQuote(char: Char): Boolean = char == '\'' || char == '"'

  private def isDigit(char: Char): Boolean = char >= '0' && char <= '9'

  private def isLetter(char: Char): Boolean =
    char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z'

  private def isWordPart(char: Char): Boolean = isLetter(char) || isDigit(char) || char == '_'

  private def isBlank(char: Char): Boolean =
    if (char < 128) char == ' ' || char >= '\t' && char <= '\r'
    else Character.isSpaceChar(char) && char != '\u2029'
}
