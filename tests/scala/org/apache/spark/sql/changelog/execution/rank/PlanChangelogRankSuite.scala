// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper

import org.apache.spark.sql.changelog.testing._

/** What is done before all rows meet. */
class PlanChangelogRankSuite extends AnyFunSuite with ChangelogSession {

  /** What a batch's plan has of these, below the rank. */
  private def plan(query: String): String = {
    val stream = new RawStream(spark, "raw", "op STRING, g STRING, n INT")
    val running = spark
      .sql(s"""SELECT * FROM to_changelog(TABLE(
           |WITH t AS (SELECT g, n FROM from_changelog(TABLE(raw))),
           |c AS (SELECT g, n FROM from_changelog(TABLE(raw), 'op')) $query))""".stripMargin)
      .writeStream
      .format("noop")
      .option("checkpointLocation", QuickFileSystem.temporaryDirectory().getPath)
      .start()
    try {
      stream.add("insert a 1")
      running.processAllAvailable()
      val text =
        running
          .asInstanceOf[StreamingQueryWrapper]
          .streamingQuery
          .lastExecution
          .executedPlan
          .toString
      assert(text.contains("ChangelogRank"))
      Seq("WindowGroupLimit", "ChangelogDrain", "LimitHotPartitions")
        .filter(text.contains)
        .mkString(" ")
    } finally running.stop()
  }

  test("each task sends what may be among the best of all") {
    assert(plan("SELECT * FROM t ORDER BY n LIMIT 3") == "WindowGroupLimit ChangelogDrain")
    assert(plan("SELECT * FROM t LIMIT 3 OFFSET 1") == "WindowGroupLimit ChangelogDrain")
    assert(
      plan("SELECT g FROM (SELECT *, dense_rank() OVER (ORDER BY n) AS r FROM t) WHERE r < 3") ==
        "WindowGroupLimit ChangelogDrain")
  }

  private def best(rows: String, function: String = "row_number"): String =
    s"SELECT g FROM (SELECT *, $function() OVER (PARTITION BY g ORDER BY n) AS r FROM $rows) WHERE r < 3"

  test("rows that go are all sent") {
    assert(plan("SELECT * FROM c ORDER BY n LIMIT 3") == "")
    assert(plan(best("c")) == "")
  }

  test("of many partitions, those are looked for that have many rows") {
    assert(plan(best("t")) == "LimitHotPartitions")
    assert(plan(best("t", "rank")) == "")
  }
}
