// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.util.Random

/** Draws names that end a quotation, a statement or a path for who forgets to quote them. */
object HostileNames {

  /** A name of any characters, at most 200 long, unlike those in `others`. */
  def draw(random: Random, others: String*): String = {
    val name = random.nextInt(8) match {
      case 0 => word(random)
      case 1 => s"${fragment(random)} ".repeat(200).take(199) + "x"
      case _ => Seq.fill(1 + random.nextInt(3))(fragment(random)).mkString
    }
    val whole = if (name.isBlank) s"a$name" else name
    if (others.exists(_.equalsIgnoreCase(whole))) s"$whole${others.size}" else whole
  }

  /** A name of letters, digits and underscores that can be read as something else. */
  def word(random: Random): String = {
    val word = words(random.nextInt(words.size))
    if (random.nextInt(4) == 0) s"${word}_".repeat(100).take(200) else word
  }

  /** As part of an SQL statement. */
  def quoted(name: String): String = s"`${name.replace("`", "``")}`"

  private def fragment(random: Random): String =
    if (random.nextInt(4) == 0) word(random) else fragments(random.nextInt(fragments.size))

  private val words = Seq("select", "FROM", "table", "as", "order", "view", "v", "1", "_", "at")

  private val fragments = Seq(
    "'",
    "\"",
    "`",
    "``",
    ".",
    ";",
    " ",
    "--",
    "/*",
    "*/",
    "😀",
    "é",
    "Ω",
    "$",
    "${x}",
    "%",
    "\\",
    "?",
    ":x",
    "(",
    ")",
    ",",
    "=",
    "@",
    "#",
    "\t",
    "\n",
    "{",
    "}",
    "[",
    "]",
    "&",
    "<b>",
    "|",
    "~",
    "../",
    "x; DROP TABLE victim; --",
    "x`; DROP TABLE victim; --",
    "x'); DROP TABLE victim; --",
    "x\" INT); DROP TABLE victim; --",
    "x` INT); DROP TABLE victim; --",
    "') OR ('1' = '1")
}
