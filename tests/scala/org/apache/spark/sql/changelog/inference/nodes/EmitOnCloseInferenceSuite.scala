// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.changelog.inference.InferenceTest
import org.apache.spark.sql.changelog.plans.Emission

class EmitOnCloseInferenceSuite extends InferenceTest {
  private val Condition = "CHANGELOG_RESULT_NOT_FINAL"

  private def declareTables(): Unit = {
    changelog("a", "id INT, ts TIMESTAMP, v INT", All, key = Seq("id"), watermark = Some("ts"))
    changelog("b", "id INT, ts TIMESTAMP, w INT", All, watermark = Some("ts"))
    changelog("users", "id INT, name STRING", All, key = Seq("id"))
    appends("ev", "id INT, ts TIMESTAMP, v INT", watermark = Some("ts"))
  }

  private def detail(sql: String): String = {
    val held = find(infer(sql, Append), "ChangelogEmit")
    assert(held.mode.toString == "[I]")
    held.reasons.mkString
  }

  private def refused(sql: String, node: String, reason: String, column: String = "ts"): Unit = {
    declareTables()
    checkRefused(Condition, Map("node" -> node, "column" -> column, "reason" -> reason)) {
      infer(sql, Append)
    }
  }

  private val unboundedJoin =
    "the join condition does not limit the time in which a row can find or lose a match: " +
      "compare the event times of both sides, as columns, in the condition"

  private val untimed =
    "no column read by the query is an event time with a watermark"

  private val laterRow =
    "a later row of a partition changes the results of earlier rows: partition by the event " +
      "time, or by a window of the event time"

  test("rows that change are held until the watermark has passed their event time") {
    declareTables()
    val root = infer("SELECT * FROM a", Append)
    assert(root.mode.toString == "[I]")
    assert(modes(root) == "Emit[I] < Source[I,UB,UA,D]")
    val held = find(root, "ChangelogEmit")
    assert(held.strategy.contains("hold rows until the watermark has passed them"))
    assert(held.state.mkString == "rows: (time, row) → count, watermark on ts")
    assert(held.reasons == Seq("a row is emitted when the watermark has passed ts"))
    assert(
      find(root, "ChangelogSource").reasons ==
        Seq("sends -U because ChangelogEmit on close [ts] must retract the old row"))
  }

  test("changes are held for an interval, or corrected after they are closed") {
    declareTables()
    val every = infer("SELECT id, v FROM a", emission = Emission.Every(10000))
    val held = find(every, "ChangelogEmit")
    assert(modes(every) == "Emit[I,UB,UA,D] < Source[I,UB,UA,D]")
    assert(held.strategy.contains("hold rows until 10.0 s have passed since the last emission"))
    assert(held.reasons.last == "net changes are emitted every 10.0 s")
    val inserts = infer("SELECT id FROM ev", Append, emission = Emission.Every(10000))
    assert(find(inserts, "ChangelogEmit").mode.toString == "[I]")
    val corrected = infer("SELECT * FROM a", emission = Emission.OnClose(3600000))
    assert(
      find(corrected, "ChangelogEmit").reasons.takeRight(2) == Seq(
        "a row is emitted when the watermark has passed ts",
        "changes of emitted rows are emitted for 1.00 h more"))
    checkRefused(Condition, Map("column" -> "ts", "reason" -> untimed)) {
      infer("SELECT u.name, a.ts FROM users u JOIN a USING (id)", emission = Emission.OnClose(1))
    }
    checkRefused("CHANGELOG_ARGUMENT_INVALID", Map("argument" -> "emit")) {
      infer("SELECT * FROM users", emission = Emission.OnClose(1))
    }
  }

  test("rows are held for their order by event time, and for no other order") {
    declareTables()
    val sorted = find(infer("SELECT * FROM ev ORDER BY ts, id DESC", Append), "ChangelogEmit")
    assert(sorted.reasons.last == "one task emits rows in the order of ts")
    for ((order, mode) <- Seq("id" -> Append, "ts DESC" -> Append, "ts" -> Retract))
      assert(modes(infer(s"SELECT * FROM ev ORDER BY $order", mode)) == "Source[I]")
  }

  test("a row without a match is final when no match can come any more") {
    declareTables()
    def joined(join: String, condition: String) =
      detail(s"SELECT a.ts, b.w FROM a $join JOIN b ON a.id = b.id AND $condition")
    assert(
      joined("LEFT", "b.ts <= a.ts + INTERVAL 5 MINUTES") ==
        "a row is emitted when the watermark has passed ts + 5.0 m")
    // matches come before the row
    assert(
      joined("LEFT", "b.ts < a.ts - INTERVAL 5 MINUTES") ==
        "a row is emitted when the watermark has passed ts")
    assert(joined("LEFT", "b.ts = a.ts") == "a row is emitted when the watermark has passed ts")
  }

  test("a pair is final when both rows are") {
    declareTables()
    assert(
      detail("SELECT a.ts, b.ts AS other FROM a JOIN b ON a.id = b.id") ==
        "a row is emitted when the watermark has passed the latest of ts and other")
  }

  test("what is left of a join's times must tell") {
    refused("SELECT a.ts FROM a JOIN b ON a.id = b.id", "ChangelogSource [id]", untimed)
    refused(
      "SELECT a.ts, b.ts AS other FROM a LEFT JOIN b ON a.id = b.id",
      "ChangelogJoin LeftOuter",
      unboundedJoin)
    refused(
      "SELECT a.ts, w FROM a LEFT JOIN b ON a.id = b.id AND b.ts > a.ts",
      "ChangelogJoin LeftOuter",
      unboundedJoin)
    refused(
      "SELECT a.ts, name FROM a JOIN users ON a.id = users.id",
      "ChangelogSource [id, name]",
      untimed)
  }

  test("an event time in the partition tells when a rank is final") {
    declareTables()
    def best(partition: String, columns: String) =
      s"""SELECT $columns FROM (
         |  SELECT *, row_number() OVER (PARTITION BY $partition ORDER BY v) AS rn
         |  FROM (SELECT *, window(ts, '5 minutes') AS w FROM ev)) WHERE rn <= 2""".stripMargin
    assert(detail(best("w, id", "w, v")).endsWith("passed w.end"))
    // the row's own time is earlier than its window's
    assert(detail(best("w", "ts, w, v")).endsWith("passed w.end"))
    refused(best("id", "ts, id, v"), "ChangelogRank row_number [id]", laterRow)
    refused(best("w", "ts, v"), "Project", "the node omits the event time of the input")
  }

  // rows of it change until five minutes after their time
  private val outer =
    "SELECT a.id, a.ts, b.ts AS other, b.w FROM a LEFT JOIN b " +
      "ON a.id = b.id AND b.ts <= a.ts + INTERVAL 5 MINUTES"

  test("above rows that wait for a match the watermark comes later") {
    declareTables()
    assert(
      detail(
        s"SELECT x.ts, x.w, y.v FROM ($outer) x LEFT JOIN ev y ON x.id = y.id AND x.ts = y.ts") ==
        "a row is emitted when the watermark has passed ts + 5.0 m")
    assert(
      detail(s"""SELECT x.ts, x.w, y.v FROM ($outer) x LEFT JOIN ev y
           |ON x.id = y.id AND y.ts <= x.ts + INTERVAL 2 MINUTES""".stripMargin) ==
        "a row is emitted when the watermark has passed ts + 5.0 m")
    // an operator that holds its rows back gives them that much later
    assert(
      detail(
        s"""SELECT w, 1 AS c FROM (SELECT id, v, window(ts, '5 minutes') AS w FROM a) UNION ALL
           |SELECT window(ts, '5 minutes') AS w, count(*) AS c FROM ($outer) GROUP BY 1""".stripMargin) ==
        "a row is emitted when the watermark has passed w.end + 5.0 m")
  }

  test("what a join or an aggregate drops as late must be final before") {
    declareTables()
    refused(
      s"SELECT x.ts, x.w, y.v FROM ($outer) x LEFT JOIN ev y ON x.id = y.id AND x.other = y.ts",
      "ChangelogJoin LeftOuter",
      unboundedJoin)
  }

  test("all inputs of a union must have their times in one place") {
    declareTables()
    assert(
      detail("SELECT ts, id FROM a UNION ALL SELECT ts, id FROM ev") ==
        "a row is emitted when the watermark has passed ts")
    assert(
      detail("SELECT ts, id FROM a UNION ALL SELECT TIMESTAMP'2020-01-01', 1") ==
        "a row is emitted when the watermark has passed ts")
    refused(
      "SELECT ts, id FROM a UNION ALL SELECT current_timestamp() - INTERVAL 1 DAY, id FROM users",
      "ChangelogSource [id]",
      untimed)
  }

  test("without an event time in the result there is nothing to wait for") {
    declareTables()
    checkRefused("CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES", Map("kinds" -> "update and delete")) {
      infer("SELECT id, v FROM a", Append)
    }
  }
}
