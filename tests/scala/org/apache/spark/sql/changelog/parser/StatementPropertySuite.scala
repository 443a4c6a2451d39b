// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import scala.util.{Failure, Random, Success, Try}

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.execution.SparkSqlParser

import org.apache.spark.sql.changelog.testing.SeedSuite

/**
 * Draws statements from their syntax. One that is written otherwise is the same statement, and one with a token too many,
 * too few or in the wrong place is a statement, or fails with the error for that.
 */
class StatementPropertySuite extends SeedSuite(500) {
  private lazy val stock = {
    assert(spark.conf != null) // secrets are looked for with the settings of Spark
    new SparkSqlParser()
  }

  /** The ways to write a token. */
  private type Ways = Seq[String]

  override protected def checkSeed(seed: Long): Unit = {
    val random = new Random(new Random(seed).nextLong()) // seeds that are near draw alike
    val statement = Statement.all((seed % Statement.all.size).toInt)
    val drawn = sequence(random, statement, statement.parsed)
    val plain = drawn.map(_.head).mkString(" ")
    val written = drawn.map(ways => anyCase(random, ways, one(random, ways)))
    val other = written
      .map(_ + blanks(random))
      .mkString(blanks(random), "", one(random, Seq("", ";", "; -- end")))
    withClue(s"seed $seed\n$plain\n$other\n") {
      val meant = parsed(plain)
      assert(meant == parsed(other))
      assert(statement.syntax.endsWith("clause") || plain.contains("COLLATION") || meant.isRight)
      for (_ <- 1 to 10) {
        val mutated = mutate(random, drawn.map(_.head)).mkString(" ")
        withClue(mutated) {
          val parser = new StatementParser(mutated, _ => LocalRelation())
          // Spark's parser also reads the columns of a view's layout
          checkOutcome(Try(parser()), isStock = mutated.contains("CLUSTER"))
          parser.meant
          checkOutcome(Try(new ChangelogParser(stock).parsePlan(mutated)), isStock = true)
        }
      }
    }
  }

  private def checkOutcome(outcome: Try[Any], isStock: Boolean): Unit = outcome match {
    case Failure(_: SparkThrowable) if isStock =>
    case Failure(error: SparkThrowable) if error.getCondition.startsWith("CHANGELOG_") =>
    case Failure(error) => fail(error)
    case Success(_) =>
  }

  /** The plan without its ids, or the condition of the error. */
  private def parsed(sql: String): Either[String, String] =
    Try(new StatementParser(sql, stock.parsePlan)()) match {
      case Success(Some(plan)) =>
        val parts = plan.getClass.getName +: plan.productIterator.map(part => s"$part").toSeq
        Right(parts.mkString("\n").replaceAll("#\\d+L?", ""))
      case Success(None) => fail(s"not ours: $sql")
      case Failure(error: SparkThrowable) if error.getCondition.startsWith("CHANGELOG_VIEW") =>
        Left(error.getCondition)
      case Failure(error) => fail(sql, error)
    }

  private def one[A](random: Random, of: Seq[A]): A = of(random.nextInt(of.size))

  private def sequence(random: Random, statement: Statement, items: Seq[Syntax]): Seq[Ways] =
    items.flatMap {
      case Syntax.Keyword(word) => Seq(Seq(word))
      case Syntax.Slot(name) => slot(random, statement, name)
      case Syntax.Choice(options, isOptional, isRepeated) =>
        val number =
          if (isRepeated) random.nextInt(options.size)
          else if (isOptional) random.nextInt(2)
          else 1
        // Spark takes no clause twice
        random.shuffle(options).take(number).flatMap(sequence(random, statement, _))
    }

  private def slot(random: Random, statement: Statement, name: String): Seq[Ways] = name match {
    case "s" => Seq(Seq("before_1", "`before_1`"))
    case "n" if statement.syntax.contains("SCD TYPE") => Seq(Seq(one(random, Seq("1", "2"))))
    case "n" => Seq(Seq(one(random, Seq("7", "64"))))
    case "collation" => Seq(Seq("UTF8_LCASE"))
    case "(columns)" if !statement.syntax.contains("AUTO CDC") =>
      Seq("(", "a", "INT", "COMMENT", "')'", ")").map(Seq(_))
    case "(transforms)" => Seq(Seq("("), Seq("a", "`a`"), Seq(")"))
    case "(properties)" => Seq(Seq("("), Seq("'k'", "\"k\""), Seq("="), Seq("'v('"), Seq(")"))
    case "(keys)" => Seq(Seq("("), Seq("k", "`k`"), Seq(")"))
    case "(columns)" | "(hidden)" | "(tracked)" | "(untracked)" =>
      Seq(Seq("("), Seq("c"), Seq(")"))
    case "*" => Seq(Seq("*"))
    // kept as text, whose tokens stay as they are written
    case "(source)" => Seq(Seq("(c)"))
    case "source" | "deletion" | "truncation" | "sequence" => Seq(Seq("c"))
    case "query" => Seq(Seq("SELECT 'a;' AS b FROM t -- AS (\n"))
    case "condition" => Seq(Seq("a = 'WHERE ' -- ';)\n"))
    case "clause" => Seq(Seq("COLUMNS (a INT)"))
    case _ => if (name.startsWith("'")) Seq(one(random, Texts)) else one(random, Names)
  }

  private val Texts: Seq[Ways] = Seq(
    Seq("'/a -- b'", "\"/a -- b\"", "R'/a -- b'", "r\"/a -- b\""),
    Seq("'it''s /* '", "'it\\'s /* '", "\"it's /* \""),
    Seq("'two\nlines'", "'two\\nlines'"))

  private val Names: Seq[Seq[Ways]] = Seq(
    Seq(Seq("v", "`v`")),
    Seq(Seq("a_1", "`a_1`"), Seq("."), Seq("`b AS '`"), Seq("."), Seq("c", "`c`")),
    Seq(Seq("`x``y`")))

  private def anyCase(random: Random, ways: Ways, token: String): String =
    if (ways.size > 1 || !token.forall(char => char.isUpper || char == '_')) token
    else one(random, Seq(token, token.toLowerCase, token.toLowerCase.capitalize))

  private def blanks(random: Random): String =
    Seq
      .fill(1 + random.nextInt(2))(
        one(
          random,
          Seq(" ", "\n", "\t", "\r\n", "\u00a0", " -- a' \n", "/* b` */", "/* /* */ AS */")))
      .mkString(" ", "", " ")

  private val Garbage =
    Seq(
      "x",
      "AS",
      "(",
      ")",
      "'",
      "\"t\"",
      "`",
      "1.5",
      ";",
      "/*",
      "--",
      ",",
      ".",
      "VIEW",
      "FROM",
      "?",
      ":",
      "$",
      "é",
      "\u0000")

  private def mutate(random: Random, tokens: Seq[String]): Seq[String] = {
    val at = random.nextInt(tokens.size)
    val token = one(random, Garbage ++ tokens)
    random.nextInt(4) match {
      case 0 => tokens.patch(at, Nil, 1)
      case 1 => tokens.patch(at, Seq(token), 1)
      case 2 => tokens.patch(at, Seq(token), 0)
      case _ => tokens.take(at)
    }
  }
}
