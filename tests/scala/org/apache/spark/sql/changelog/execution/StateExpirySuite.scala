// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.io.File

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.streaming.StreamingQueryException

import org.apache.spark.sql.changelog.testing._

/** State that is forgotten for its age. */
class StateExpirySuite extends AnyFunSuite with ChangelogSession {
  private val ttl = "spark.sql.changelog.state.ttl"

  private def withTtl[T](value: String, provider: Map[String, String] = Map.empty)(
      body: => T): T = {
    val conf = provider + (ttl -> value)
    conf.foreach { case (key, value) => spark.conf.set(key, value) }
    try body
    finally conf.keys.foreach(spark.conf.unset)
  }

  private val raw = "op STRING, g STRING, n INT"

  private def start(
      sql: String,
      checkpoint: File = QuickFileSystem.temporaryDirectory(),
      arguments: String = "") =
    new RunningChanges(
      spark.sql(s"""SELECT * FROM to_changelog(TABLE(WITH t AS (
           |SELECT * FROM from_changelog(TABLE(raw), change_type => 'op'$arguments)) $sql))""".stripMargin),
      checkpoint)

  private def expired(running: RunningChanges): Long =
    running.progress.stateOperators.map(_.customMetrics.asScala("numExpiredStateRows").toLong).sum

  private val sql = "SELECT g, count(*), min(n), count(DISTINCT n) FROM t GROUP BY g"

  for ((provider, conf) <- Variant.Providers) {
    test(s"what nothing changes is forgotten and counted, $provider") {
      val stream = new RawStream(spark, "raw", raw)
      withTtl("1ms", conf) {
        val running = start(sql)
        try {
          stream.add("insert a 1", "insert a 2", "insert b 1")
          assert(running.next() == Seq("a 2 1 2 insert", "b 1 1 1 insert"))
          running.pass(20)
          stream.add("insert a 7")
          assert(running.next() == Seq("a 1 7 1 insert"), "as if nothing had been there")
          // two groups, three values; the entry of group a was written anew
          assert(expired(running) == 4)
        } finally running.stop()
      }
    }

    test(s"what is young enough is kept, $provider") {
      val stream = new RawStream(spark, "raw", raw)
      withTtl("1h", conf) {
        val running = start(sql)
        try {
          stream.add("insert a 1", "insert a 2")
          running.next()
          stream.add("insert a 7", "delete a 1")
          assert(
            running.next() ==
              Seq("a 2 1 2 update_preimage", "a 2 2 2 update_postimage"))
          assert(expired(running) == 0)
        } finally running.stop()
      }
    }
  }

  test("a normalized key is forgotten too") {
    val stream = new RawStream(spark, "raw", raw)
    withTtl("1ms") {
      val running =
        start("SELECT g, n FROM t", arguments = ", key => array('g'), input => 'upsert'")
      try {
        stream.add("insert a 1")
        running.next()
        running.pass(20)
        stream.add("insert a 2")
        assert(running.next() == Seq("a 2 insert"))
      } finally running.stop()
    }
  }

  test("a rank, a window function, distinct values and recomputed groups are forgotten too") {
    val stream = new RawStream(spark, "raw", raw)
    def forgets(sql: String, first: String, anew: String): Unit = withTtl("1ms") {
      stream.reset()
      val running = start(sql)
      try {
        stream.add("insert a 10")
        assert(running.next() == Seq(first))
        running.pass(20)
        stream.add("insert a 20")
        assert(running.next() == Seq(anew))
      } finally running.stop()
    }
    forgets(
      "SELECT upper(g) AS k, median(n) AS m FROM t GROUP BY 1",
      "A 10.0 insert",
      "A 20.0 insert")
    forgets(
      "SELECT g, count(DISTINCT n) AS c FROM t WHERE n > 1 GROUP BY g",
      "a 1 insert",
      "a 1 insert")
    forgets(
      "SELECT g, n FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY n) AS r FROM t) WHERE r = 1",
      "a 10 insert",
      "a 20 insert")
    forgets("SELECT n, sum(n) OVER (PARTITION BY g) AS s FROM t", "10 10 insert", "20 20 insert")
  }

  test("the length may change, but not whether there is one") {
    val stream = new RawStream(spark, "raw", raw)
    val checkpoint = QuickFileSystem.temporaryDirectory()
    def next(rows: String*): Seq[String] = {
      val running = start("SELECT g, count(*) FROM t GROUP BY g", checkpoint)
      try {
        stream.add(rows: _*)
        running.next()
      } finally running.stop()
    }
    assert(withTtl("1h")(next("insert a 1")) == Seq("a 1 insert"))
    assert(
      withTtl("2h")(next("insert a 2")) == Seq("a 1 update_preimage", "a 2 update_postimage"))
    val error = intercept[StreamingQueryException](withTtl("0")(next("insert a 3")))
    assert(error.getMessage.contains("changed at"))
  }
}
