// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** What ranks keep, as Spark's own reader of state shows it. */
class ChangelogRankStateSuite extends AnyFunSuite with StateRecords {
  private val changes = Feed("t", "g STRING, n INT, unread STRING")
  private val inserts = changes.copy(insertOnly = true)
  private val head = "to_json(struct(value.rows, value.counts), map('ignoreNullFields', 'false'))"

  private def best(count: Int): String =
    s"SELECT g, n FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY n) AS r FROM t) " +
      s"WHERE r <= $count"

  for ((provider, conf) <- Variant.Providers) {
    test(s"over new rows the best are kept, and a row beyond the last rank is not, $provider") {
      val kept = records(best(2), inserts, s"concat($keyAsJson, ' ', $head)", conf)(
        Seq("+I a 5 x", "+I a 3 x", "+I b 1 x"),
        Seq("+I a 4 x", "+I a 9 x"),
        Seq("+I a 3 x", "+I a 3 x"))
      assert(
        kept == Seq(
          Set(
            """{"g":"a"} {"rows":[{"n":3},{"n":5}],"counts":null}""",
            """{"g":"b"} {"rows":[{"n":1}],"counts":null}"""),
          Set(
            """{"g":"a"} {"rows":[{"n":3},{"n":4}],"counts":null}""",
            """{"g":"b"} {"rows":[{"n":1}],"counts":null}"""),
          Set(
            """{"g":"a"} {"rows":[{"n":3}],"counts":[2]}""",
            """{"g":"b"} {"rows":[{"n":1}],"counts":null}""")))
    }

    test(s"over counts that only grow only the highest are kept, $provider") {
      val sql =
        """SELECT g, n, c FROM (
          |  SELECT *, row_number() OVER (PARTITION BY g ORDER BY c DESC, n) AS r FROM (
          |    SELECT g, n, count(*) AS c FROM t GROUP BY g, n))
          |WHERE r <= 2""".stripMargin
      val kept = records(sql, inserts, s"concat($keyAsJson, ' ', $head)", conf, operator = 1)(
        Seq.tabulate(30)(n => s"+I a $n x") :+ "+I a 7 x",
        Seq("+I a 9 x", "+I a 9 x"))
      assert(
        kept == Seq(
          Set("""{"g":"a"} {"rows":[{"n":7,"c":2},{"n":0,"c":1}],"counts":null}"""),
          Set("""{"g":"a"} {"rows":[{"n":9,"c":3},{"n":7,"c":2}],"counts":null}""")))
    }

    test(s"over rows that go the best are one record and each other row is one, $provider") {
      val rows = Seq.tabulate(25)(n => s"+I a $n x")
      val kept = records(best(2), changes, s"concat($keyAsJson, ' ', value.count)", conf)(
        rows,
        rows.take(3).map(_.replace("+I", "-D")),
        rows.map(_.replace("+I", "-D")).drop(3))
      // ten are kept together, of which the first two are shown
      assert(kept(0) == others(10 until 25, others = 15))
      assert(kept(1) == others(10 until 25, others = 15))
      assert(kept(2).isEmpty)
    }

    test(s"without an order it is enough to count, $provider") {
      val kept = records(
        "SELECT g FROM t LIMIT 2",
        inserts,
        s"concat($keyAsJson, ' ', value.count)",
        conf)(Seq("+I a 1 x"), Seq("+I a 2 x", "+I a 3 x", "+I a 4 x"))
      assert(kept == Seq(Set("""{"table":0} 1"""), Set("""{"table":0} 2""")))
    }
  }

  private def others(rows: Range, others: Int): Set[String] =
    rows.map(n => s"""{"g":"a","row":{"n":$n}} 1""").toSet + s"""{"g":"a","row":null} $others"""
}
