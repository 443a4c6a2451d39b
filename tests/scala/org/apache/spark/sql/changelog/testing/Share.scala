// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

/**
 * What each run takes of queries, ways and stores that are many: always the same ones, so that all
 * tests end in time. `dev/test-all` takes all of them.
 */
object Share {

  /** Whether nothing is left out. */
  val isAll: Boolean = sys.env.contains("CHANGELOG_TEST_ALL")

  /** One in so many, the first one among them. */
  def of[T](all: Seq[T], oneIn: Int): Seq[T] =
    if (isAll) all else all.grouped(oneIn).map(_.head).toSeq

  /** One of the ways to do something, which depends on what is done. */
  def ofWays[T](all: Seq[T], what: String): Seq[T] =
    if (isAll) all else Seq(all(Math.floorMod(what.hashCode, all.size)))

  /** Whether something is among the half that is done, which depends on what it is. */
  def takes(what: String): Boolean = ofWays(Seq(true, false), what).contains(true)

  /** Checks a program in one of several ways, which depends on its query. */
  def check(oracle: Oracle, program: Program, ways: Seq[Variant] = Variant.all): Unit =
    oracle.checkAll(program, ofWays(ways, program.sql))
}
