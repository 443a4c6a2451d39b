// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** What watermarks do to joins with the version of a time. */
class TemporalJoinTimeSuite extends AnyFunSuite with TimedChanges {
  private val version = "LATERAL (SELECT * FROM r x WHERE x.k = l.k AND x.ts <= l.ts " +
    "ORDER BY x.ts DESC LIMIT 1) r"

  /** Runs a query over `l` and `r`. */
  private def joining(sql: String, mode: String = "retract")(
      body: (RawStream, RunningChanges) => Unit): Unit = runningIn(
    mode,
    (if (mode == "append") "" else "op STRING, ") + "side STRING, ts TIMESTAMP, k INT, v INT",
    """, l AS (SELECT ts, k, v FROM t WHERE side = 'l'),
      |r AS (SELECT ts, k, v FROM t WHERE side = 'r') """.stripMargin + sql,
    Map.empty)(body)

  test("left rows that are certain go, and versions but the last") {
    joining(s"SELECT l.v AS lv, r.v AS rv FROM l LEFT JOIN $version") { (stream, query) =>
      stream.add(
        s"insert r ${minute(1)} 1 10",
        s"insert r ${minute(3)} 1 11",
        s"insert l ${minute(2)} 1 20",
        s"insert l ${minute(4)} 1 21",
        s"insert l ${minute(30)} 1 22")
      assert(query.next() == Seq("20 10 insert", "21 11 insert", "22 11 insert"))
      // the watermark is at 20 minutes
      stream.add(s"insert r ${minute(31)} 1 12")
      assert(query.next() == Nil)
      assert(rows == Seq("left 22", "right 11", "right 12"))
      stream.add(
        s"delete r ${minute(3)} 1 11",
        s"insert r ${minute(4)} 1 13",
        s"insert l ${minute(5)} 1 23",
        s"insert r ${minute(25)} 1 14")
      assert(query.next() == Seq("22 11 delete", "22 14 insert"))
      assert(droppedRows(query) == 3)
      def rows = storedRows(query)
    }
  }

  test("a reader that takes new rows only gets a left row when it is certain") {
    Seq("LEFT" -> Seq("30 NULL insert"), "INNER" -> Nil).foreach { case (joinType, unmatched) =>
      joining(s"SELECT l.v AS lv, r.v AS rv FROM l $joinType JOIN $version", "append") {
        (stream, query) =>
          stream.add(
            s"l ${minute(2)} 1 20",
            s"l ${minute(4)} 1 21",
            s"l ${minute(12)} 1 22",
            s"l ${minute(2)} 2 30",
            s"r ${minute(3)} 1 11")
          assert(query.next() == Nil)
          stream.add(s"r ${minute(1)} 1 10", s"r ${minute(15)} 1 12")
          // the watermark is at 2 minutes, then at 5
          assert(query.next() == Seq("20 10 insert") ++ unmatched)
          stream.add(s"r ${minute(16)} 1 13")
          assert(query.next() == Seq("21 11 insert"))
          assert(storedRows(query) == Seq("left 22", "right 11", "right 12", "right 13"))
          stream.add(s"l ${minute(3)} 1 23", s"l ${minute(40)} 1 24")
          assert(query.next() == Nil)
          stream.add(s"l ${minute(41)} 1 25")
          assert(query.next() == Seq("22 11 insert"))
          assert(storedRows(query) == Seq("left 24", "left 25", "right 13"))
      }
    }
  }

  /** The rows of both sides in state, by side and `v`. */
  private def storedRows(query: RunningChanges): Seq[String] = {
    val checkpoint = query.checkpoint.getPath
    spark.read
      .format("statestore")
      .load(checkpoint)
      .selectExpr("CAST(key.table AS INT) AS side", "value.*")
      .where("side < 2")
      .selectExpr("explode(concat(" +
        "transform(coalesce(left, array()), row -> concat('left ', row.v)), " +
        "transform(coalesce(right, array()), row -> concat('right ', row.v))))")
      .collect()
      .map(_.getString(0))
      .sorted
      .toSeq
  }
}
