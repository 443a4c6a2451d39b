// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.multi

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.testing._

/** Which joins are done at once, what is kept of their inputs, and what is counted. */
class ChangelogMultiJoinSuite extends AnyFunSuite with ChangelogSession {
  private val switch = "spark.sql.changelog.join.multiJoin.enabled"
  private val names = Seq("a", "b", "c", "d")
  private lazy val streams = names.map { name =>
    name -> new RawStream(spark, s"${name}_raw", "op STRING, k INT, v INT, at TIMESTAMP")
  }.toMap

  private def tables(key: String): Unit = names.foreach { name =>
    streams(name).reset()
    val argument = if (key.isEmpty) "" else s", key => $key"
    spark
      .sql(s"SELECT * FROM from_changelog(TABLE(${name}_raw), 'op'$argument)")
      .createOrReplaceTempView(name)
  }

  /** The joins of a query, each with its number of inputs, from the top. */
  private def joins(query: String): Seq[String] = {
    val Array(Row(text: String)) = spark.sql(s"EXPLAIN CHANGELOG $query").collect()
    "Changelog(?:Multi)?Join [^\\n]*?  ".r.findAllIn(text).map(_.trim).toSeq
  }

  private def start(query: String): RunningChanges = new RunningChanges(
    spark.sql(s"SELECT * FROM to_changelog(TABLE($query))"),
    QuickFileSystem.temporaryDirectory())

  private def metric(running: RunningChanges, name: String): Long =
    running.query.recentProgress
      .flatMap(_.stateOperators)
      .map(_.customMetrics.get(name).toLong)
      .sum

  private val chain = "SELECT a.v, b.v, c.v FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k"

  test("inner joins on one key are one, whichever of its columns they compare") {
    tables("'k'")
    assert(joins(chain) == Seq("ChangelogMultiJoin ((a.k = b.k) AND (a.k = c.k))"))
    assert(
      joins(
        "SELECT a.v, d.v FROM a JOIN b USING (k) JOIN c USING (k) JOIN d USING (k)").size == 1)
    val bushy =
      "SELECT * FROM (SELECT a.k, a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k) p JOIN " +
        "(SELECT c.k, c.v AS z, d.v AS u FROM c JOIN d ON c.k = d.k) q ON p.k = q.k AND p.x < q.z"
    assert(joins(bushy) ==
      Seq("ChangelogMultiJoin (((a.k = b.k) AND (a.k = c.k)) AND ((a.k = d.k) AND (a.v < c.v)))"))
  }

  test("joins of other types, on other keys, of something static and of two stay as they are") {
    tables("'k'")
    Seq(
      "SELECT * FROM a JOIN b ON a.k = b.k",
      "SELECT * FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k",
      "SELECT * FROM a JOIN b ON a.k = b.k JOIN c ON b.v = c.v",
      "SELECT * FROM a JOIN b ON a.k = b.k AND a.v = b.v JOIN c ON b.k = c.k",
      "SELECT * FROM a JOIN b ON a.k = b.k JOIN c ON a.v < c.v",
      "SELECT * FROM a JOIN b ON a.k = b.k JOIN VALUES (1), (2) AS s(k) ON s.k = b.k")
      .foreach { query =>
        val found = joins(query)
        assert(found.nonEmpty && !found.exists(_.startsWith("ChangelogMultiJoin")), query)
      }
    // one below that is not
    assert(
      joins("SELECT * FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k JOIN d ON c.v = d.v")
        .map(_.takeWhile(_ != ' ')) == Seq("ChangelogJoin", "ChangelogMultiJoin"))
  }

  test("rows that a watermark or their age bounds are joined two at a time") {
    names.foreach { name =>
      streams(name).toDF.withWatermark("at", "1 hour").createOrReplaceTempView(s"${name}_timed")
      spark
        .sql(s"SELECT * FROM from_changelog(TABLE(${name}_timed), 'op')")
        .createOrReplaceTempView(name)
    }
    val timed = "SELECT a.v, b.v, c.v FROM a JOIN b ON a.at = b.at JOIN c ON b.at = c.at"
    assert(joins(timed).map(_.takeWhile(_ != ' ')) == Seq("ChangelogJoin", "ChangelogJoin"))
    tables("'k'")
    spark.conf.set("spark.sql.changelog.state.ttl", "1h")
    try assert(joins(chain).size == 2)
    finally spark.conf.unset("spark.sql.changelog.state.ttl")
  }

  test("each input is kept once, in the form its key allows, and nothing in between") {
    onProviders {
      tables("'k'")
      streams.foreach { case (_, stream) => stream.reset() }
      spark
        .sql("SELECT * FROM from_changelog(TABLE(b_raw), 'op')")
        .createOrReplaceTempView("b")
      spark
        .sql("SELECT * FROM from_changelog(TABLE(SELECT k, v FROM c_raw))")
        .createOrReplaceTempView("c")
      streams("a").add("+I 1 10 NULL", "+I 2 11 NULL")
      streams("b").add("+I 1 20 NULL", "+I 1 20 NULL", "+I NULL 21 NULL", "+I 1 22 NULL")
      streams("c").add("_ 1 30 NULL", "_ 1 31 NULL")
      val running = start(chain)
      try {
        assert(
          running.next() == Seq(
            "10 20 30 insert",
            "10 20 30 insert",
            "10 20 31 insert",
            "10 20 31 insert",
            "10 22 30 insert",
            "10 22 31 insert"))
        assert(
          running.reports.flatMap(_.stateOperators).map(_.operatorName).distinct ==
            Seq("changelogMultiJoin"))
        assert(metric(running, "numInput2RowsAdded") == 2)
        assert(metric(running, "numInput3RowsAdded") == 2)
        val records = spark.read
          .format("statestore")
          .load(running.checkpoint.getPath)
          .selectExpr(
            "key.side",
            "key.k",
            "value.input1",
            "key.input2",
            "value.count",
            "key.input3 IS NOT NULL",
            "array_join(value.input3.v, ' ')")
          .collect()
          .map(TextChangelog.format)
          .sorted
          .toSeq
        assert(
          records == Seq(
            "0 1 {1,10} NULL NULL false NULL",
            "0 2 {2,11} NULL NULL false NULL",
            "1 1 NULL {1,20} 2 false NULL",
            "1 1 NULL {1,22} 1 false NULL",
            "2 1 NULL NULL NULL true 30 31"))
        streams("b").add("-D 1 20 NULL", "-D 1 20 NULL", "-D 1 22 NULL", "-D 5 5 NULL")
        assert(running.next().forall(_.endsWith("delete")))
        assert(metric(running, "numUnmatchedRetractions") == 1)
      } finally running.stop()
    }
  }

  test("a query that has started keeps its joins under another setting") {
    tables("'k'")
    spark.conf.set(switch, "false")
    val started =
      try start(chain)
      finally spark.conf.unset(switch)
    streams("a").add("+I 1 10 NULL")
    streams("b").add("+I 1 20 NULL")
    try started.next()
    finally started.stop()
    val again = new RunningChanges(
      spark.sql(s"SELECT * FROM to_changelog(TABLE($chain))"),
      started.checkpoint)
    try {
      streams("c").add("+I 1 30 NULL")
      assert(again.next() == Seq("10 20 30 insert"))
      assert(
        again.query.lastProgress.stateOperators.count(_.operatorName == "changelogJoin") == 2)
    } finally again.stop()
  }
}
