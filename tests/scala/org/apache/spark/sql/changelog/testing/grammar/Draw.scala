// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import scala.util.Random

/** Chooses by chance, and gives names that were not given before. */
private[grammar] final class Draw(random: Random) {
  private var names = 0

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
