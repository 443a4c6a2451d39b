// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import java.io.File

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.testing._

/** What a join keeps of each side, as Spark's own reader shows it, and what it counts. */
class ChangelogJoinStateSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  // each row once: without an equality rows have salts, and copies
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = Map(ChangelogConf.JOIN_SPREAD_ENABLED.key -> "false"))

  private lazy val left = new RawStream(spark, "l_raw", "op STRING, a INT, b STRING")
  private lazy val right = new RawStream(spark, "r_raw", "op STRING, c INT, d STRING")

  private def start(query: String, checkpoint: File, keys: Boolean): RunningChanges = {
    left.reset()
    right.reset()
    def table(name: String, key: String) =
      s"SELECT * FROM from_changelog(TABLE(${name}_raw), 'op'${if (keys) s", key => '$key'"
        else ""})"
    spark.sql(table("l", "a")).createOrReplaceTempView("l")
    spark.sql(table("r", "c")).createOrReplaceTempView("r")
    new RunningChanges(spark.sql(s"SELECT * FROM to_changelog(TABLE($query))"), checkpoint)
  }

  /** The state after one batch, and whether none is left when all rows are deleted. */
  private def checkState(query: String, keys: Boolean)(columns: String*)(
      expected: String*): Unit = onProviders {
    val checkpoint = QuickFileSystem.temporaryDirectory()
    val running = start(query, checkpoint, keys)
    val leftRows = Seq("1 x", "2 y", "3 y") ++ (if (keys) Nil else Seq("NULL n"))
    val rightRows = Seq("1 p", "2 q", "5 q") ++ (if (keys) Nil else Seq("NULL m"))
    def state(columns: Seq[String]): Seq[String] = spark.read
      .format("statestore")
      .load(checkpoint.getPath)
      .selectExpr(columns: _*)
      .collect()
      .map(TextChangelog.format)
      .sorted
      .toSeq
    try {
      left.add(leftRows.map("+I " + _): _*)
      right.add(rightRows.map("+I " + _): _*)
      running.next()
      assert(state(columns) == expected.sorted)
      left.add(leftRows.map("-D " + _): _*)
      right.add(rightRows.map("-D " + _): _*)
      running.next()
      assert(state(Seq("key")).isEmpty)
    } finally running.stop()
  }

  test("a side whose key the join key holds keeps one row per join key") {
    checkState("SELECT a, b, d FROM l JOIN r ON a = c", keys = true)(
      "key.side",
      "key.a",
      "value.left",
      "value.right")(
      "0 1 {1,x} NULL",
      "0 2 {2,y} NULL",
      "0 3 {3,y} NULL",
      "1 1 NULL {1,p}",
      "1 2 NULL {2,q}",
      "1 5 NULL {5,q}")
  }

  test("a side with another key keeps a row per key") {
    checkState("SELECT a, b, c FROM l JOIN r ON b = d", keys = true)(
      "key.side",
      "key.b",
      "key.left",
      "key.right",
      "value.left",
      "value.right")(
      "0 x {1} NULL {1,x} NULL",
      "0 y {2} NULL {2,y} NULL",
      "0 y {3} NULL {3,y} NULL",
      "1 p NULL {1} NULL {1,p}",
      "1 q NULL {2} NULL {2,q}",
      "1 q NULL {5} NULL {5,q}")
  }

  test("a side without a key keeps counted rows, and none whose join key is NULL") {
    checkState("SELECT a, b, d FROM l FULL JOIN r ON a = c", keys = false)(
      "key.side",
      "key.a",
      "key.left",
      "key.right",
      "value.count")(
      "0 1 {1,x} NULL 1",
      "0 2 {2,y} NULL 1",
      "0 3 {3,y} NULL 1",
      "1 1 NULL {1,p} 1",
      "1 2 NULL {2,q} 1",
      "1 5 NULL {5,q} 1")
  }

  test("NULL join keys are kept where NULL equals NULL") {
    checkState("SELECT b, d FROM l JOIN r ON a <=> c", keys = false)("key.side", "key.a")(
      "0 1",
      "0 2",
      "0 3",
      "0 NULL",
      "1 1",
      "1 2",
      "1 5",
      "1 NULL")
  }

  test("of rows that are only looked for their number is kept") {
    checkState("SELECT a FROM l WHERE b IN (SELECT d FROM r)", keys = true)(
      "key.side",
      "key.b",
      "key.left",
      "value.count")("0 x {1} NULL", "0 y {2} NULL", "0 y {3} NULL", "1 p NULL 1", "1 q NULL 2")
  }

  test("groups are looked for, not the rows they are made of, however few rows a batch brings") {
    // Spark would join the rows first, where it takes the other side for small
    val query =
      "SELECT * FROM (SELECT b, count(*) AS n FROM l GROUP BY b) WHERE b IN (SELECT d FROM r)"
    val running = start(query, QuickFileSystem.temporaryDirectory(), keys = true)
    try {
      left.add("+I 1 p", "+I 2 p", "+I 3 p", "+I 4 q")
      running.next()
      right.add("+I 1 p")
      assert(running.next() == Seq("p 3 insert"))
      val joins = running.query.recentProgress
        .flatMap(_.stateOperators)
        .filter(_.operatorName == "changelogJoin")
      assert(joins.map(_.customMetrics.get("numLeftRowsAdded").toLong).sum == 2)
    } finally running.stop()
  }

  test("under a condition each row that is preserved keeps the number of its matches") {
    checkState("SELECT a, b FROM l LEFT ANTI JOIN r ON b < d AND a < c", keys = false)(
      "key.side",
      "key.left",
      "key.right",
      "value.count",
      "value.matches")(
      "0 {1,x} NULL 1 0",
      "0 {2,y} NULL 1 0",
      "0 {3,y} NULL 1 0",
      "0 {NULL,n} NULL 1 0",
      "1 NULL {1,p} 1 NULL",
      "1 NULL {2,q} 1 NULL",
      "1 NULL {5,q} 1 NULL")
    checkState("SELECT a, d FROM l LEFT JOIN r ON a <= c AND d <> 'm'", keys = false)(
      "key.left",
      "value.matches")(
      "{1} 3",
      "{2} 2",
      "{3} 1",
      "{NULL} 0",
      "NULL NULL",
      "NULL NULL",
      "NULL NULL")
  }

  test("rows that only come are kept together as they came, however many") {
    val query = "SELECT l.b, r.d FROM from_changelog(TABLE(l_raw)) l " +
      "JOIN from_changelog(TABLE(r_raw)) r ON l.a = r.c"
    onProviders {
      val checkpoint = QuickFileSystem.temporaryDirectory()
      val running = start(query, checkpoint, keys = false)
      try {
        left.add("_ 1 x", "_ 1 x", "_ 2 y", "_ NULL n")
        running.next()
        right.add((1 to 1500).map(number => s"_ 1 p$number"): _*)
        assert(running.next().size == 3000)
        left.add("_ 1 z")
        assert(running.next().size == 1500)
        val rows = spark.read
          .format("statestore")
          .load(checkpoint.getPath)
          .selectExpr(
            "key.side",
            "key.a",
            "key.left",
            "key.right",
            "size(value.left)",
            "size(value.right)")
          .collect()
          .map(TextChangelog.format)
        assert(
          rows.sorted.toSeq == Seq(
            "0 1 {0,0} NULL 2 NULL",
            "0 1 {2,0} NULL 1 NULL",
            "0 2 {0,0} NULL 1 NULL",
            "1 1 NULL {1,0} NULL 1024",
            "1 1 NULL {1,1} NULL 476"))
        left.add("_ 1 w")
        assert(running.next().size == 1500)
      } finally running.stop()
    }
  }

  test("rows are counted per side, and retractions of rows never given by policy") {
    val checkpoint = QuickFileSystem.temporaryDirectory()
    val running = start("SELECT a, b, d FROM l LEFT JOIN r ON a = c", checkpoint, keys = false)
    def metric(name: String): Long =
      running.reports
        .flatMap(_.stateOperators.headOption)
        .map(_.customMetrics.get(name).toLong)
        .sum
    try {
      left.add("+I 1 x", "+I 2 y", "+I NULL z")
      right.add("+I 1 p")
      running.next()
      assert(metric("numLeftRowsAdded") == 2 && metric("numRightRowsAdded") == 1)
      assert(metric("numLeftKeysChanged") == 3 && metric("numRightKeysChanged") == 1)
      assert(metric("numMatches") == 1)
      left.add("-D 1 x", "-D 9 x")
      right.add("+I 2 q")
      assert(running.next() == Seq("1 x p delete", "2 y NULL delete", "2 y q insert"))
      assert(metric("numLeftRowsDropped") == 1 && metric("numRightRowsDropped") == 0)
      assert(metric("numUnmatchedRetractions") == 1 && metric("numRetractions") == 2)
      assert(metric("numPaddingsRetracted") == 1)
      assert(metric("numLeftKeysChanged") == 2 && metric("numRightKeysChanged") == 1)
      assert(metric("numMatches") == 1)
      spark.conf.set("spark.sql.changelog.unmatchedRetraction", "fail")
    } finally {
      running.stop()
      spark.conf.unset("spark.sql.changelog.unmatchedRetraction")
    }
  }
}
