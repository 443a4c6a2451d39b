// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** What is in the state store, as Spark's own reader shows it. */
class ChangelogReplayStateSuite extends AnyFunSuite with StateRecords {

  /** The records in state after each batch, as `key -> count`. */
  private def state(sql: String, conf: Map[String, String])(
      batches: Seq[String]*): Seq[Set[String]] = {
    val feed = Feed("t", "g STRING, n INT, unread STRING")
    records(sql, feed, s"concat($keyAsJson, ' -> ', value.count)", conf)(batches: _*)
  }

  for ((provider, conf) <- Variant.Providers) {
    test(s"a group's rows are counted, in the columns that are read, $provider") {
      val sql = "SELECT g, median(n) FROM t GROUP BY g"
      assert(
        state(sql, conf)(
          Seq("+I a 1 x", "+I a 1 y", "+I a 2 z", "+I b NULL x"),
          Seq("-D a 1 x", "-D b NULL x"),
          Seq("-D a 9 x", "-D a 1 y", "-D a 2 z")) == Seq(
          Set(
            """{"g":"a","n":1} -> 2""",
            """{"g":"a","n":2} -> 1""",
            """{"g":"b","n":null} -> 1"""),
          Set("""{"g":"a","n":1} -> 1""", """{"g":"a","n":2} -> 1"""),
          Set("""{"g":"a","n":9} -> -1""")))
    }

    test(s"without groups it is remembered that a row was given, $provider") {
      assert(
        state("SELECT median(n) FROM t", conf)(Seq("+I a 1 x"), Seq("-D a 1 x")) == Seq(
          Set("""{"table":0,"n":1} -> 1""", """{"table":1,"n":null} -> 1"""),
          Set("""{"table":1,"n":null} -> 1""")))
    }

    test(s"a window keeps the columns of its rows, $provider") {
      assert(
        state("SELECT n, max(g) OVER (ORDER BY n) AS before FROM t", conf)(
          Seq("+I a 1 x", "+I b 2 y", "+I b 2 z")) == Seq(
          Set("""{"table":0,"n":1,"g":"a"} -> 1""", """{"table":0,"n":2,"g":"b"} -> 2""")))
    }
  }
}
