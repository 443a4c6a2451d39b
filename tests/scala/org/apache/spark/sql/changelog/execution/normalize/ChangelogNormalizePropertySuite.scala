// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.normalize

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/**
 * Random feeds without before images. The table they describe is computed three ways: batch by
 * batch, by a batch `from_changelog` over everything so far, and by the oracle's own reading.
 */
class ChangelogNormalizePropertySuite extends AnyFunSuite with ChangelogSession {
  private lazy val oracle = new Oracle(spark)
  private val columns = "a INT, b STRING, v STRING, n INT"
  private val queries = Seq(
    "SELECT * FROM t",
    "SELECT v, count(*), sum(n), max(n) FROM t GROUP BY v",
    "SELECT c, count(*) FROM (SELECT v, count(*) AS c FROM t WHERE n > 1 GROUP BY v) GROUP BY c")

  /** Changes of few keys, so that all that can happen to a key does. */
  private def change(random: Random, insertOnly: Boolean): String = {
    val kinds = if (insertOnly) Seq("+I") else Seq("+I", "+U", "+U", "-U", "-D")
    val values = Seq("x", "y", "NULL")
    val n = if (random.nextInt(6) == 0) "NULL" else random.nextInt(5).toString
    Seq(
      kinds(random.nextInt(kinds.size)),
      random.nextInt(2).toString,
      Seq("k", "l")(random.nextInt(2)),
      values(random.nextInt(values.size)),
      n).mkString(" ")
  }

  private def program(seed: Int, numSteps: Int): Program = {
    val random = new Random(seed)
    val insertOnly = random.nextInt(5) == 0
    val sequence = Seq(Nil, Seq("n"), Seq("n", "v"))(random.nextInt(3))
    val feed = Feed(
      "t",
      columns,
      Seq("a", "b"),
      insertOnly = insertOnly,
      upsert = true,
      sequence = sequence)
    val steps = Seq.fill(numSteps) {
      Step(feed, Seq.fill(random.nextInt(5))(change(random, insertOnly)): _*)
    }
    Program(Seq(feed), queries(random.nextInt(queries.size)), steps)
  }

  private def check(seed: Int, numSteps: Int, variant: Variant): Unit = {
    val random = program(seed, numSteps)
    try oracle.check(random, variant)
    catch {
      case error: Throwable =>
        val feed = random.feeds.head
        val steps = random.steps.map(_.changes("t").mkString(", ")).mkString("\n")
        throw new AssertionError(
          s"seed $seed [$variant] $feed ${random.sql}\n$steps\n$error",
          error)
    }
  }

  test("random upsert feeds give the table a batch reads") {
    (1 to 8).foreach(seed => check(seed, numSteps = 5, Variant()))
  }

  test("random upsert feeds survive restarts on both state store providers") {
    check(101, numSteps = 4, Variant(restart = true))
    check(102, numSteps = 4, Variant(restart = true, conf = Variant.RocksDB))
  }
}
