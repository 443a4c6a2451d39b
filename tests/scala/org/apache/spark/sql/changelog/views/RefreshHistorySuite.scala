// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.changelog.views.history.{RefreshHistory, RefreshRecord}

/** What is told of refreshes, of those that failed as well. */
trait RefreshHistoryTests extends ViewTest {

  /** Mode, reason, state, and rows read, written and taken back, the newest first. */
  private def refreshes: Seq[String] =
    spark
      .sql("SHOW REFRESHES OF MATERIALIZED VIEW v")
      .selectExpr("mode", "reason", "state", "rows_read", "rows_written", "rows_retracted")
      .collect()
      .map(_.mkString(", "))
      .toSeq

  /** Rows of state, and whether it takes room, the newest first. */
  private def states: Seq[String] =
    spark
      .sql("SHOW REFRESHES OF v")
      .selectExpr("state_rows", "state_bytes > 0")
      .collect()
      .map(_.mkString(", "))
      .toSeq

  private def facts: Map[String, String] = facts("DESCRIBE MATERIALIZED VIEW v")

  testEach("each refresh is remembered, with what it read and wrote") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    val first = "incremental, the view is new, SUCCEEDED, 2, 2, 0"
    assert(refreshes == Seq(first))
    deliver("-D 2 Ben 20", "+I 3 Eve 1", "+I 4 Ada 1")
    run("REFRESH MATERIALIZED VIEW v")
    val second = "incremental, the query reads a stream, SUCCEEDED, 3, 2, 1"
    assert(refreshes == Seq(second, first))
    assert(
      facts("Last refresh").contains(
        "incremental, 3 rows read, 2 rows written, 1 rows retracted"))
    assert(states.head == "2, true")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
    assert(states.head == "null, null")
    run("REFRESH MATERIALIZED VIEW v FULL")
    // of the two files that came
    assert(
      refreshes.take(2) == Seq(
        "full, asked for, SUCCEEDED, 5, 2, 0",
        "incremental, asked for, SUCCEEDED, 0, 0, 0"))
    spark.sql(s"CREATE OR REPLACE MATERIALIZED VIEW v USING $provider AS SELECT 1 AS a")
    assert(refreshes.head == "full, the view was replaced, SUCCEEDED, null, 1, null")
    assert(refreshes.size == 5)
    val told = run("SHOW REFRESHES OF v").apply(1)
    assert(told.getDouble(1) > 0 && told.getMap[String, String](5).size == 1, told)
  }

  testEach("all rows that a refresh reads are counted, however many batches it takes") {
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", 1)
    try {
      (1 to 3).foreach(id => deliver(s"+I $id Ada 30"))
      create(totals.replace("STREAM orders", "STREAM orders WITH ('maxFilesPerTrigger' = '1')"))
      assert(refreshes.head.contains("SUCCEEDED, 3,"), refreshes)
    } finally spark.conf.unset("spark.sql.streaming.numRecentProgressUpdates")
  }

  testEach("views that one statement refreshes are as of one moment, as what they read") {
    create(totals)
    create("SELECT count(*) AS customers FROM v", name = "second")
    run("REFRESH MATERIALIZED VIEWS")
    val moments = Seq("v", "second").map { name =>
      val told: Map[String, String] = facts(s"DESCRIBE MATERIALIZED VIEW $name")
      told("As of")
    }
    assert(moments.distinct.size == 1, moments)
  }

  testEach("a refresh that fails is told until one succeeds") {
    deliver("+I 1 Ada 30")
    create(totals)
    deliver("? 2 Ben 20")
    val asOf = facts("As of")
    checkError("CHANGELOG_CHANGE_TYPE_UNKNOWN")(run("REFRESH MATERIALIZED VIEW v"))
    assert(facts("Status") == "FAILED" && facts("As of") == asOf, facts)
    assert(facts("Failure").contains("[CHANGELOG_CHANGE_TYPE_UNKNOWN]"), facts)
    assert(facts("Last refresh").contains("1 rows read"), facts)
    assert(run("SHOW MATERIALIZED VIEWS").map(_.getString(3)) == Seq("FAILED"))
    val failed = run("SHOW REFRESHES OF v").head
    assert(
      failed.getString(4) == "FAILED" && failed.getAs[String]("error") == facts("Failure").drop(
        facts("Failure").indexOf('[')))
    run(s"CREATE OR REPLACE MATERIALIZED VIEW v USING $provider AS SELECT 1 AS a")
    assert(facts("Status") == "IDLE" && !facts.contains("Failure"), facts)
  }
}

class DeltaRefreshHistorySuite extends RefreshHistoryTests {
  override protected def provider = "delta"
}

class SnapshotRefreshHistorySuite extends RefreshHistoryTests {

  test("what ran until it was stopped is remembered with all it did") {
    create(totals)
    run("START MATERIALIZED VIEW v")
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    RunningViews.active(new ViewCatalog(spark).get(Seq("v"))).get.processAllAvailable()
    run("STOP MATERIALIZED VIEW v")
    val last = run("SHOW REFRESHES OF v").head
    assert(last.getString(2) == "started" && last.getLong(6) == 2 && last.getLong(7) == 2, last)
    assert(facts("DESCRIBE MATERIALIZED VIEW v")("Status") == "IDLE")
  }

  test("the last hundred refreshes are remembered, and always the last that succeeded") {
    create(totals)
    def history = RefreshHistory.ofView(spark, new ViewCatalog(spark).get(Seq("v")))
    val good = history.last.get
    for (number <- 1 to 102) {
      history.add(
        RefreshRecord(good.started + number, 0, 0, "full", "", error = Some(s"error $number")))
    }
    assert(history.all.size == 101 && history.lastSuccess.contains(good))
    assert(history.last.flatMap(_.error).contains("error 102"))
  }
}
