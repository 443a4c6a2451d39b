// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.io.File

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkThrowable

import org.apache.spark.sql.changelog.testing._

/** State as Spark's own tools see it: readable, measured, and safe from other queries. */
class ChangelogStateSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private lazy val stream =
    new RawStream(spark, "raw", "op STRING, a STRING, b STRING, n INT, m INT")
  private val retract = "from_changelog(TABLE(raw), 'op')"
  private val upsert = "from_changelog(TABLE(raw), 'op', 'a', 'upsert', 'm')"

  private def start(query: String, checkpoint: File): RunningChanges =
    new RunningChanges(spark.sql(s"SELECT * FROM to_changelog(TABLE($query))"), checkpoint)

  private def directory(): File = QuickFileSystem.temporaryDirectory()

  private def state(checkpoint: File, operator: Int = 0)(columns: String*): Seq[String] =
    spark.read
      .format("statestore")
      .option("operatorId", operator.toLong)
      .load(checkpoint.getPath)
      .selectExpr(columns: _*)
      .collect()
      .map(TextChangelog.format)
      .sorted
      .toSeq

  test("the state of an aggregate is readable, column by column") {
    onProviders {
      val checkpoint = directory()
      stream.reset()
      val running = start(
        s"SELECT a, count(*), sum(n), avg(m) FILTER (WHERE n > 1) FROM $retract GROUP BY a",
        checkpoint)
      stream.add("+I x u 1 2", "+I x u 2 3", "+I y u 7 7", "-D y u 7 7")
      running.next()
      running.stop()
      assert(
        state(checkpoint)(
          "key.a",
          "value.`count(1)`",
          "value.`sum(n).total`",
          "value.`sum(n).count`") ==
          Seq("x 2 3 2"))
      val names =
        spark.read.format("statestore").load(checkpoint.getPath).selectExpr("value.*").columns
      assert(names.contains("avg(m) where (n > 1).count"))
    }
  }

  test("the state of min and max is readable, heads and tails") {
    onProviders {
      val checkpoint = directory()
      stream.reset()
      spark.conf.set("spark.sql.changelog.aggregate.headSize", 2L)
      try {
        val running = start(s"SELECT a, min(n), max(n) FROM $retract GROUP BY a", checkpoint)
        stream.add((1 to 9).map(n => s"+I x u $n 0"): _*)
        running.next()
        running.stop()
      } finally spark.conf.unset("spark.sql.changelog.aggregate.headSize")
      val heads = state(checkpoint)(
        "key.table",
        "key.a",
        "value.group.`min(n).head`.value[0]",
        "value.group.`max(n).head`.value[0]")
      assert(heads.contains("0 x 1 9"))
      val tails = state(checkpoint)("key.table", "key.a", "key.n", "value.count").filterNot(
        _.startsWith("0"))
      assert(tails.nonEmpty && tails.forall(_.matches("1 x [1-9] 1")), tails)
    }
  }

  test("the state of an upsert feed is readable, tombstones included") {
    onProviders {
      val checkpoint = directory()
      stream.reset()
      val running = start(s"SELECT a, b, n FROM $upsert", checkpoint)
      stream.add("+I x u 1 5", "+I y v 2 6", "-D y v 2 7")
      running.next()
      running.stop()
      assert(
        state(checkpoint)(
          "key.a",
          "value.a",
          "value.b",
          "value.n",
          "value.`sequence.m`",
          "value.deleted") ==
          Seq("x x u 1 5 false", "y NULL NULL NULL 7 true"))
    }
  }

  test("the operators of a query are listed in its checkpoint") {
    val checkpoint = directory()
    stream.reset()
    val running = start(
      s"SELECT c, min(s) FROM (SELECT b, count(*) AS c, sum(n) AS s FROM $upsert GROUP BY b) GROUP BY c",
      checkpoint)
    stream.add("+I x u 1 5")
    running.next()
    val operators =
      spark.read.format("state-metadata").load(checkpoint.getPath).orderBy("operatorId")
    assert(
      operators
        .select("operatorId", "operatorName", "stateStoreName", "numPartitions", "minBatchId")
        .collect()
        .map(TextChangelog.format)
        .toSeq == Seq(
        "0 changelogNormalize default 2 0",
        "1 changelogAggregate default 2 0",
        "2 changelogAggregate default 2 0"))
    assert(
      running.progress.stateOperators.map(_.operatorName).toSet ==
        Set("changelogNormalize", "changelogAggregate"))
    running.stop()
  }

  test("state goes when a group empties, and progress counts retractions") {
    val queries = Seq(
      s"SELECT a, count(*), sum(n) FROM $retract GROUP BY a",
      s"SELECT a, min(n), max(n) FROM $retract GROUP BY a",
      s"SELECT c, count(*) FROM (SELECT a, count(*) AS c FROM $retract GROUP BY a) GROUP BY c",
      "SELECT * FROM from_changelog(TABLE(raw), 'op', 'a', 'upsert')")
    queries.foreach { query =>
      stream.reset()
      val running = start(query, directory())
      def rows = running.progress.stateOperators.map(_.numRowsTotal).toSeq
      stream.add("+I x u 1 0", "+I y v 2 0")
      running.next()
      assert(rows.forall(_ > 0), query)
      stream.add("-D x u 1 0", "-D y v 2 0")
      running.next()
      assert(rows.forall(_ == 0), query)
      val removed = running.progress.stateOperators.map(_.numRowsRemoved).sum
      assert(removed > 0, query)
      val metrics = running.progress.stateOperators.map(_.customMetrics.asScala)
      assert(metrics.map(_.apply("numRetractions").longValue).sum >= 1, query)
      assert(metrics.forall(_.apply("numUnmatchedRetractions") == 0), query)
      stream.add("-D z w 1 0")
      running.next()
      val unmatched = running.progress.stateOperators
        .map(_.customMetrics.get("numUnmatchedRetractions").longValue)
      assert(unmatched.sum == 1, query)
      running.stop()
    }
  }

  test("by conf, a retraction of what was never given stops the query") {
    val conf = "spark.sql.changelog.unmatchedRetraction"
    spark.conf.set(conf, "fail")
    try {
      Seq(s"SELECT a, sum(n) FROM $retract GROUP BY a", s"SELECT * FROM $upsert").foreach {
        query =>
          stream.reset()
          val running = start(query, directory())
          stream.add("-D x u 1 0")
          checkError("CHANGELOG_UNMATCHED_RETRACTION", "conf" -> conf)(running.next())
      }
    } finally spark.conf.unset(conf)
  }

  /** A query, and one that must not go on with its state. */
  private val incompatible = Seq(
    (s"SELECT a, sum(n) FROM $retract GROUP BY a", s"SELECT b, sum(n) FROM $retract GROUP BY b"),
    (s"SELECT a, sum(n) FROM $retract GROUP BY a", s"SELECT a, sum(m) FROM $retract GROUP BY a"),
    (s"SELECT a, min(n) FROM $retract GROUP BY a", s"SELECT a, max(n) FROM $retract GROUP BY a"),
    (
      s"SELECT a, sum(n) FROM $retract GROUP BY a",
      s"SELECT a, n, sum(n) FROM $retract GROUP BY a, n"),
    (
      s"SELECT a, sum(n), count(m) FROM $retract GROUP BY a",
      s"SELECT a, sum(n) FROM $retract GROUP BY a"),
    (
      s"SELECT s, count(*) FROM (SELECT a, sum(n) AS s FROM $retract GROUP BY a) GROUP BY s",
      s"SELECT a, sum(n) AS s FROM $retract GROUP BY a"),
    (
      s"SELECT s, count(*) FROM (SELECT a, sum(n) AS s FROM $retract GROUP BY a) GROUP BY s",
      s"SELECT s, sum(n) FROM (SELECT count(*) AS s, n FROM $retract GROUP BY n) GROUP BY s"),
    (s"SELECT a, sum(n) FROM $retract GROUP BY a", s"SELECT a, sum(n) FROM $upsert GROUP BY a"),
    (s"SELECT a, b FROM $upsert", s"SELECT a, n FROM $upsert"),
    (
      s"SELECT a FROM $upsert",
      "SELECT b FROM from_changelog(TABLE(raw), 'op', 'b', 'upsert', 'm')"))

  /** The conditions of the error that ends `after` on the checkpoint of `before`. */
  private def refusal(before: String, after: String)(change: File => Unit): Seq[String] = {
    val checkpoint = directory()
    stream.reset()
    val first = start(before, checkpoint)
    stream.add("+I x u 1 2")
    first.next()
    first.stop()
    change(checkpoint)
    stream.add("+I y v 2 3")
    val error = intercept[Throwable] {
      val second = start(after, checkpoint)
      try second.next()
      finally second.stop()
    }
    Iterator
      .iterate(error)(_.getCause)
      .takeWhile(_ != null)
      .collect { case error: SparkThrowable => error.getCondition }
      .toSeq
  }

  test("a query with other operators or columns is refused the state, by name") {
    incompatible.foreach { case (before, after) =>
      val conditions = refusal(before, after)(_ => ())
      assert(conditions.contains("CHANGELOG_QUERY_CHANGED"), s"$before -> $after: $conditions")
    }
  }

  test("a query that means the same goes on: other names, phases and modes") {
    val before = s"SELECT a, sum(n), min(n) FROM $retract GROUP BY a"
    val after = s"SELECT x.a AS k, sum(x.n) AS s, min(n) FROM $retract AS x GROUP BY x.a"
    val checkpoint = directory()
    stream.reset()
    val first = start(before, checkpoint)
    stream.add("+I x u 1 2", "+I y u 3 0")
    assert(first.next() == Seq("x 1 1 insert", "y 3 3 insert"))
    first.stop()
    val phases = "spark.sql.changelog.twoPhase.enabled"
    spark.conf.set(phases, false)
    try {
      val second = start(after, checkpoint)
      stream.add("+I x u 3 2", "+I y u 2 0")
      assert(
        second.next() == Seq(
          "x 1 1 update_preimage",
          "x 4 1 update_postimage",
          "y 3 3 update_preimage",
          "y 5 2 update_postimage"))
      second.stop()
    } finally spark.conf.unset(phases)
  }

  test("before the first batch is committed the query may still change") {
    val checkpoint = directory()
    stream.reset()
    val first = start(s"SELECT a, sum(n) FROM $retract GROUP BY a", checkpoint)
    stream.add("? x u 1 2")
    changelogError(first.next())
    val fixed = "from_changelog(TABLE(raw), 'op', on_error => 'drop')"
    val second = start(s"SELECT b, sum(n) FROM $fixed GROUP BY b", checkpoint)
    stream.add("+I x u 1 2")
    assert(second.next() == Seq("u 1 insert"))
    second.stop()
    val third = start(s"SELECT b, sum(n) FROM $fixed GROUP BY b", checkpoint)
    stream.add("+I x u 1 2")
    assert(third.next().size == 2)
    third.stop()
  }
}
