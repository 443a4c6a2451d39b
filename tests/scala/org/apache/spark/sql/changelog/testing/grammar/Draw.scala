// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import scala.util.Random

import org.apache.spark.sql.types.{DataType, VariantType}

/**
 * Chooses by chance, and gives names that were not given before.
 *
 * @param grammar
 *   what may be drawn at all
 */
private[grammar] final class Draw(random: Random, grammar: Grammar = Grammar.Narrow) {
  private var names = 0
  private var subqueriesLeft = 3

  def isWide: Boolean = grammar != Grammar.Narrow

  def isWidest: Boolean = grammar == Grammar.Widest

  /** The types of columns. */
  def allTypes: Seq[DataType] = grammar match {
    case Grammar.Narrow => Types.all
    case Grammar.Wide => Types.all ++ Types.wide
    case Grammar.Widest => Types.all ++ Types.wide ++ Types.collated
  }

  /** Those of which values can be compared. */
  def keyTypes: Seq[DataType] = allTypes.filter(_ != VariantType)

  /** Whether a subquery may stand here too, where it would be the last level. */
  def takesSubquery(): Boolean = {
    val taken = isWide && subqueriesLeft > 0 && oneIn(2)
    if (taken) subqueriesLeft -= 1
    taken
  }

  /** A name not used anywhere else in the query. */
  def name(prefix: String): String = {
    names += 1
    s"$prefix$names"
  }

  def oneIn(count: Int): Boolean = random.nextInt(count) == 0

  def below(count: Int): Int = random.nextInt(count)

  def one[T](choices: Seq[T]): T = choices(random.nextInt(choices.size))

  def word(choices: String*): String = one(choices)

  /** Up to `count` of them, in any order. */
  def some[T](choices: Seq[T], count: Int): Seq[T] = random.shuffle(choices).take(count)

  /** Calls one of the choices; each is as likely as its weight says. */
  def weighted[T](choices: (Int, () => T)*): T = {
    val at = random.nextInt(choices.map(_._1).sum)
    val sums = choices.scanLeft(0)(_ + _._1).tail
    choices(sums.indexWhere(at < _))._2()
  }
}
