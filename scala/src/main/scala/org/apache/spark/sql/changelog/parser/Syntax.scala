// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import scala.annotation.tailrec
import scala.collection.mutable

/**
 * A part of a statement's syntax, in the notation of the docs:
 *
 *   - `WORD`: a keyword
 *   - `v`: a name; `n`: a number; `'text'`: a text in quotes; `(list)`: parentheses with their
 *     content
 *   - `query`, `condition` or `clause`: the rest of the statement, for Spark's parser
 *   - `deletion`, `truncation` or `sequence`: an expression, up to the next clause
 *   - `*`: the asterisk
 *   - `[a | b]`: an optional choice; `{a | b}`: a choice; `[a | b]…`: any number of choices
 */
private[parser] sealed trait Syntax

private[parser] object Syntax {
  case class Keyword(word: String) extends Syntax

  case class Slot(name: String) extends Syntax {
    def takesRestOfText: Boolean = name == "query" || name == "condition" || name == "clause"

    def isExpression: Boolean = Set("deletion", "truncation", "sequence")(name)

    /** The name of the slot's values in an error. */
    def expected: String = name.head match {
      case '\'' => "a text in quotes"
      case '(' => "("
      case '*' => "*"
      case _ if isExpression => "an expression"
      case _ if takesRestOfText => s"a $name"
      case _ => if (name == "n") "a number" else "a name"
    }
  }

  case class Choice(options: Seq[Seq[Syntax]], isOptional: Boolean, isRepeated: Boolean)
      extends Syntax

  def apply(notation: String): Seq[Syntax] = {
    val tokens = new SqlTokens(notation)
    var next = 0
    def take(): String = {
      next += 1
      tokens.textOf(next - 1)
    }
    def sequence(): Vector[Syntax] =
      if (Set("", "|", "]", "}")(tokens.textOf(next))) Vector.empty else item() +: sequence()
    def options(): Vector[Seq[Syntax]] = {
      val first = sequence()
      if (take() == "|") first +: options() else Vector(first)
    }
    def item(): Syntax = take() match {
      case "[" =>
        val all = options()
        val isRepeated = tokens.isSymbol(next, '…')
        if (isRepeated) next += 1
        Choice(all, isOptional = true, isRepeated)
      case "{" => Choice(options(), isOptional = false, isRepeated = false)
      case "(" => Slot(s"(${take()}${take()}")
      case word => if (word.forall(_.isUpper)) Keyword(word) else Slot(word)
    }
    sequence()
  }

  /** The keywords after an expression within a statement. */
  val Clauses: Seq[String] = Seq("APPLY", "SEQUENCE", "COLUMNS", "STORED", "TRACK")

  /** The end of the rest of a statement, whose tokens are not scanned. */
  val AllRead: Int = Int.MaxValue

  val EndOfStatement = "the end of the statement"

  /**
   * The keywords and slots of a statement.
   *
   * @param end
   *   the number of the token after the statement
   * @param parts
   *   for each keyword and slot, the numbers of its first token and of the token after it
   */
  case class Found(end: Int, parts: Map[String, (Int, Int)]) {
    def and(part: String, next: Int): Found = Found(next, parts + (part -> (end -> next)))
  }
}

/**
 * Matches a text with the syntax of statements. Records the furthest failed token, and the parts
 * expected there.
 *
 * @param isQuery
 *   whether a slot may take the rest of a statement
 */
private[parser] final class SyntaxReader(tokens: SqlTokens, isQuery: Boolean = true) {
  import Syntax._

  private val keywords = mutable.Set.empty[Int]

  /** The number of the furthest token with a failed match. */
  var failedAt = 0

  /** The keywords and slots expected at the failed token. */
  val expected: mutable.Set[String] = mutable.LinkedHashSet.empty[String]

  /** Returns the parts of the text, or None without a match. */
  def read(syntax: Seq[Syntax]): Option[Found] =
    sequence(syntax, Found(0, Map.empty)).filter { found =>
      found.end == AllRead || {
        val end = Iterator.from(found.end).find(!tokens.isSymbol(_, ';')).get
        tokens(end).kind == SqlTokens.End || fails(end, EndOfStatement)
      }
    }

  private def sequence(items: Seq[Syntax], from: Found): Option[Found] =
    items.foldLeft(Option(from))((found, item) => found.flatMap(one(item, _)))

  private def one(item: Syntax, from: Found): Option[Found] = item match {
    case Keyword(word) =>
      Option.when(tokens.isWord(from.end, word) || fails(from.end, word)) {
        keywords += from.end
        from.and(word, from.end + 1)
      }
    case slot: Slot =>
      val end = endOf(slot, from.end)
      Option.when(end != from.end || fails(end, slot.expected))(from.and(slot.name, end))
    case Choice(options, isOptional, isRepeated) =>
      def once(found: Found) =
        options.iterator.map(sequence(_, found)).collectFirst { case Some(next) => next }
      @tailrec def all(found: Found): Found = once(found) match {
        case Some(next) => all(next)
        case None => found
      }
      if (isRepeated) Some(all(from)) else once(from).orElse(Option.when(isOptional)(from))
  }

  /** Returns the number of the token after a slot; `first` if the slot does not match. */
  private def endOf(slot: Slot, first: Int): Int = slot.name.head match {
    case '\'' if tokens.isSymbol(first, '?') => first + 1
    case '\'' if tokens.isSymbol(first, ':') && isPart(first + 1) => first + 2
    case '\'' => Iterator.from(first).find(tokens(_).kind != SqlTokens.Text).get
    case '(' => if (tokens.isSymbol(first, '(')) afterParentheses(first) else first
    case _ if slot.takesRestOfText =>
      val isNone = tokens(first).kind == SqlTokens.End || tokens.isSymbol(first, ';')
      // A keyword at this place belongs to another statement.
      if (isNone || !isQuery || keywords(first)) first else AllRead
    case '*' => if (tokens.isSymbol(first, '*')) first + 1 else first
    case _ if slot.isExpression => afterExpression(first)
    case _ if slot.name == "n" =>
      if (tokens(first).kind == SqlTokens.Number) first + 1 else first
    case _ => afterName(first)
  }

  /** Returns the number of the first token of the next clause outside parentheses. */
  private def afterExpression(first: Int): Int = tokens.outside(first) { next =>
    tokens.isSymbol(next, ';') || Clauses.exists(tokens.isWord(next, _))
  }

  private def afterName(first: Int): Int =
    if (!isPart(first)) first
    else if (tokens.isWord(first, "IDENTIFIER") && tokens.isSymbol(first + 1, '(')) {
      afterParentheses(first + 1)
    } else {
      var end = first + 1
      while (tokens.isSymbol(end, '.') && isPart(end + 1)) end += 2
      end
    }

  private def isPart(number: Int): Boolean = {
    val token = tokens(number)
    token.kind == SqlTokens.Word || token.kind == SqlTokens.QuotedName && token.end - token.start > 2
  }

  private def afterParentheses(first: Int): Int =
    tokens.afterParentheses(first).getOrElse {
      fails(tokens.outside(first)(_ => false), ")")
      first
    }

  /** Records an expected part, and returns false. */
  private def fails(number: Int, part: String): Boolean = {
    if (number > failedAt) expected.clear()
    failedAt = math.max(failedAt, number)
    if (number == failedAt) expected += part
    false
  }
}
