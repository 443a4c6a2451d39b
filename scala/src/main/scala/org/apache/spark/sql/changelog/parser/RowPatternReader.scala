// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import scala.collection.mutable

import org.apache.spark.sql.AnalysisException

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.functions.PatternStep
import org.apache.spark.sql.changelog.functions.PatternStep._

/**
 * The clauses of `MATCH_RECOGNIZE`. Expressions are text.
 *
 * @param skip
 *   whether the search goes on at the first or the last row of a variable; none for the row after the match, or a
 *   variable without a name for the next row
 * @param variables
 *   the variables of the pattern, in the order of their first use
 */
private[parser] final case class MatchClauses(
    partition: Option[String],
    order: String,
    measures: String,
    skip: Option[(Boolean, Option[String])],
    steps: Seq[PatternStep],
    variables: Seq[String],
    within: Option[String],
    subsets: Seq[(String, Seq[String])],
    definitions: Seq[(String, String)])

/** RowPatternReader: reads the clauses of `MATCH_RECOGNIZE`, in the order of the SQL standard. */
private[parser] final class RowPatternReader(text: String) {
  import RowPatternReader._

  private val tokens = new SqlTokens(text)
  private var at = 0
  private val variables = mutable.LinkedHashSet.empty[String]

  def apply(): MatchClauses = {
    val partition = if (takes("PARTITION BY")) Some(until(Heads)) else None
    need("ORDER BY")
    val order = until(Heads)
    need("MEASURES")
    val measures = until(Heads)
    if (takes("ALL ROWS")) throw unsupported("ALL ROWS PER MATCH", "ONE ROW PER MATCH")
    if (takes("ONE ROW")) need("PER MATCH")
    val skip = if (takes("AFTER MATCH")) afterMatch() else None
    need("PATTERN")
    val steps = inParentheses(alternatives())
    val within = if (takes("WITHIN")) Some(until(Seq("SUBSET", "DEFINE"))) else None
    val subsets =
      if (takes("SUBSET"))
        separated {
          val subset = name()
          need('=')
          subset -> inParentheses(separated(name()))
        }
      else Nil
    need("DEFINE")
    val definitions = separated {
      val variable = name()
      need("AS")
      variable -> until(Nil, endsAtComma = true)
    }
    if (tokens(at).kind != SqlTokens.End) throw expected("the end")
    MatchClauses(
      partition,
      order,
      measures,
      skip,
      steps,
      variables.toSeq,
      within,
      subsets,
      definitions)
  }

  private def afterMatch(): Option[(Boolean, Option[String])] = {
    need("SKIP")
    if (takes("PAST LAST ROW")) None
    else if (takes("TO NEXT ROW")) Some((true, None))
    else if (takes("TO FIRST")) Some((true, Some(name())))
    else if (takes("TO LAST") || takes("TO")) Some((false, Some(name())))
    else throw expected("PAST LAST ROW, TO NEXT ROW, TO FIRST variable or TO LAST variable")
  }

  private def alternatives(): Seq[PatternStep] = {
    val first = sequence()
    if (takes('|')) either(first, alternatives()) else first
  }

  private def sequence(): Seq[PatternStep] = {
    var steps = quantified()
    while (!Seq('|', ')', ',').exists(tokens.isSymbol(at, _))) {
      steps ++= quantified()
      if (steps.size > MostSteps) throw tooLarge()
    }
    steps
  }

  private def quantified(): Seq[PatternStep] = {
    val steps = primary()
    def repeated(least: Int, most: Option[Int]): Seq[PatternStep] = {
      val isGreedy = !takes('?')
      val copies = math.max(least, most.getOrElse(least + 1))
      if ((steps.size + 1L) * copies > MostSteps) throw tooLarge()
      val first = Seq.fill(least)(steps).flatten
      most match {
        case Some(number) =>
          first ++ (least until number).foldLeft(Seq.empty[PatternStep]) { (inner, _) =>
            optional(steps ++ inner, isGreedy)
          }
        case None if least == 0 => optional(oneOrMore(steps, isGreedy), isGreedy)
        case None => first.dropRight(steps.size) ++ oneOrMore(steps, isGreedy)
      }
    }
    if (takes('*')) repeated(0, None)
    else if (takes('+')) repeated(1, None)
    else if (takes('?')) repeated(0, Some(1))
    else if (tokens.isSymbol(at, '{') && !tokens.isSymbol(at + 1, '-')) {
      at += 1
      val least = number()
      val most = if (takes(',')) number() else least
      if (least.isEmpty && most.isEmpty) throw expected("a number of rows")
      need('}')
      if (most.exists(_ < least.getOrElse(0))) throw expected("a range of rows")
      repeated(least.getOrElse(0), most)
    } else steps
  }

  private def primary(): Seq[PatternStep] =
    if (tokens.isSymbol(at, '(')) {
      if (tokens.isSymbol(at + 1, ')')) {
        at += 2
        Nil
      } else inParentheses(alternatives())
    } else if (takes('^')) Seq(AtEdge(isEnd = false))
    else if (takes('$')) Seq(AtEdge(isEnd = true))
    else if (tokens.isSymbol(at, '{')) {
      throw unsupported("{- pattern -}", "the pattern without {- and -}")
    } else if (tokens.isWord(at, "PERMUTE") && tokens.isSymbol(at + 1, '(')) {
      at += 1
      val parts = inParentheses(separated(alternatives()))
      if (parts.size > MostPermuted) throw tooLarge()
      val all = parts.indices.permutations.map(_.flatMap(parts)).toSeq
      if (all.map(_.size + 2).sum > MostSteps) throw tooLarge()
      all.reduceRight(either)
    } else {
      val variable = name()
      val same = variables.find(_.equalsIgnoreCase(variable)).getOrElse(variable)
      variables += same
      Seq(TakeRow(variables.toSeq.indexOf(same)))
    }

  private def either(first: Seq[PatternStep], second: Seq[PatternStep]): Seq[PatternStep] =
    (Fork(0, first.size + 1) +: first) ++ (GoTo(second.size) +: second)

  private def optional(steps: Seq[PatternStep], isGreedy: Boolean): Seq[PatternStep] =
    (if (isGreedy) Fork(0, steps.size) else Fork(steps.size, 0)) +: steps

  private def oneOrMore(steps: Seq[PatternStep], isGreedy: Boolean): Seq[PatternStep] = {
    val back = -steps.size - 1
    steps :+ (if (isGreedy) Fork(back, 0) else Fork(0, back))
  }

  private def tooLarge() = unsupported(
    s"A pattern of more than $MostSteps steps",
    "a pattern with smaller numbers of repetitions")

  /** Returns the text up to a keyword outside parentheses, or up to the end. */
  private def until(heads: Seq[String], endsAtComma: Boolean = false): String = {
    val first = at
    at = tokens.outside(at) { next =>
      heads.exists(isHead(next, _)) || endsAtComma && tokens.isSymbol(next, ',')
    }
    if (at == first) throw expected("an expression")
    text.substring(tokens(first).start, tokens(at - 1).end)
  }

  private def isHead(first: Int, head: String): Boolean =
    areWords(first, head) && (head != "PATTERN" || tokens.isSymbol(first + 1, '('))

  private def separated[A](item: => A): Seq[A] = {
    val items = Seq.newBuilder[A]
    items += item
    while (takes(',')) items += item
    items.result()
  }

  private def inParentheses[A](body: => A): A = {
    need('(')
    val result = body
    need(')')
    result
  }

  private def name(): String = {
    val text = tokens.textOf(at)
    tokens(at).kind match {
      case SqlTokens.Word => at += 1; text
      case SqlTokens.QuotedName => at += 1; text.drop(1).dropRight(1).replace("``", "`")
      case _ => throw expected("the name of a variable")
    }
  }

  private def number(): Option[Int] =
    Option.when(tokens(at).kind == SqlTokens.Number) {
      val number = tokens.textOf(at).toIntOption.getOrElse(throw expected("a number of rows"))
      at += 1
      number
    }

  private def areWords(first: Int, words: String): Boolean =
    words.split(' ').zipWithIndex.forall { case (word, i) => tokens.isWord(first + i, word) }

  private def takes(words: String): Boolean = {
    val found = areWords(at, words)
    if (found) at += words.count(_ == ' ') + 1
    found
  }

  private def takes(symbol: Char): Boolean = {
    val found = tokens.isSymbol(at, symbol)
    if (found) at += 1
    found
  }

  private def need(words: String): Unit = if (!takes(words)) throw expected(words)

  private def need(symbol: Char): Unit = if (!takes(symbol)) throw expected(symbol.toString)

  private def expected(what: String): AnalysisException = {
    val rest = text.substring(tokens(at).start)
    val found = if (rest.isEmpty) "the end" else rest.take(MostShown)
    RowPatternReader.invalid(found, s"expected $what")
  }
}

private[parser] object RowPatternReader {
  private val Heads =
    Seq("PARTITION BY", "ORDER BY", "MEASURES", "ONE ROW", "ALL ROWS", "AFTER MATCH", "PATTERN")
  private val MostSteps = 1000
  private val MostPermuted = 6
  private val MostShown = 60

  def invalid(at: String, reason: String): AnalysisException =
    analysis("CHANGELOG_ROW_PATTERN_INVALID", "at" -> at, "reason" -> reason)

  /** Returns the result of `body`, whose errors name the text of a clause. */
  def of[A](text: String)(body: => A): A =
    try body
    catch {
      case error: AnalysisException
          if !String.valueOf(error.getCondition).startsWith("CHANGELOG") =>
        throw invalid(text, error.getMessage.linesIterator.next())
    }

  def unsupported(what: String, instead: String): AnalysisException =
    analysis("CHANGELOG_ROW_PATTERN_NOT_SUPPORTED", "what" -> what, "instead" -> instead)
}
