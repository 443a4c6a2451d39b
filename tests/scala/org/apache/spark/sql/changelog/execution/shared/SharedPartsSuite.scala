// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.shared

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper

import org.apache.spark.sql.changelog.testing._

/** Parts that a query reads several times, each over a table that changes at will. */
class SharedPartsSuite extends AnyFunSuite with StateRecords with TimedChanges {
  import SharedPartsSuite._

  private lazy val oracle = new Oracle(spark)

  private val t = Feed("t", "id INT, k STRING, v INT", Seq("id"))
  private val u = Feed("u", "k STRING, w INT")

  private val steps = Seq(
    Step.of(
      t -> Seq("+I 1 a 5", "+I 2 b 3", "+I 3 c NULL", "+I 4 NULL 7", "+I 5 a 5"),
      u -> Seq("+I a 1", "+I a 1", "+I b 4")),
    Step.of(
      t -> Seq("-U 1 a 5", "+U 1 a 6", "-D 2 b 3", "+I 6 d 11"),
      u -> Seq("-D a 1", "+I c 5", "+I NULL 2")),
    Step.of(t -> Nil),
    Step.of(t -> Seq("-U 3 c NULL", "+U 3 b NULL", "-D 4 NULL 7"), u -> Seq("-D b 4")),
    Step.of(t -> Seq("-D 1 a 6", "-D 5 a 5", "+I 7 b 2", "-D 6 d 11"), u -> Seq("-D a 1")))

  private def program(sql: String): Program = {
    val feeds = Seq(t, u).filter(feed => s"\\b${feed.name}\\b".r.findFirstIn(sql).isDefined)
    val names = feeds.map(_.name).toSet
    Program(feeds, sql, steps.map(step => Step(step.changes.filter(names contains _._1))))
  }

  /** The physical plan of a query over `t` and `u`. */
  private def planOf(sql: String): SparkPlan = planOfAll(changes(sql))

  /** The physical plan of one stream with the changes of several queries. */
  private def planOfAll(emitted: String): SparkPlan = {
    var plan: Option[SparkPlan] = None
    withEmitted(emitted) { (streams, running) =>
      streams.head.add("+I 1 a 5")
      streams.last.add("+I a 5")
      running.next()
      val execution =
        running.query.asInstanceOf[StreamingQueryWrapper].streamingQuery.lastExecution
      plan = Some(execution.executedPlan)
    }
    plan.get
  }

  private def readings(plan: SparkPlan): Int =
    plan.collect { case reading: SharedReadingExec => reading }.size

  Seq(
    (
      "equal parts that are written out",
      "SELECT a.k, a.s, b.n FROM (SELECT k, sum(v) AS s FROM t GROUP BY k) a JOIN (SELECT k, count(v) AS n FROM t GROUP BY k) b ON a.s > b.n",
      1),
    (
      "an aggregate against its own maximum",
      Totals + "SELECT * FROM s WHERE s = (SELECT max(s) FROM s)",
      1),
    (
      "an aggregate joined with itself by its key",
      Totals + "SELECT a.k, a.s, b.c FROM s a JOIN s b ON a.k = b.k",
      1),
    (
      "an aggregate joined with itself by another column",
      Totals + "SELECT a.k, b.k AS o, a.s FROM s a LEFT JOIN s b ON a.s = b.c",
      1),
    (
      "a union of an aggregate with itself",
      Totals + "SELECT k, s FROM s UNION ALL SELECT k, c FROM s UNION ALL SELECT 'x', s FROM s WHERE c > 1",
      2),
    (
      "an aggregate in IN, EXISTS and a join",
      Totals + "SELECT u.k, w, s.s FROM u LEFT JOIN s ON u.k = s.k WHERE u.w IN (SELECT c FROM s) OR u.k NOT IN (SELECT k FROM s WHERE k IS NOT NULL)",
      2),
    (
      "a join read three times",
      "WITH j AS (SELECT t.id, t.k, w FROM t JOIN u ON t.k = u.k) SELECT k, count(*) AS n FROM j GROUP BY k UNION ALL SELECT 'all', sum(w) FROM j UNION ALL SELECT k, max(id) FROM j GROUP BY k",
      2),
    (
      "the best rows of each group, twice",
      "WITH r AS (SELECT * FROM (SELECT k, id, v, row_number() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM t) WHERE n <= 2) SELECT k, v FROM r UNION ALL SELECT k, max(id) FROM r GROUP BY k",
      1),
    (
      "an aggregate of a shared aggregate, shared",
      Totals + ", m AS (SELECT c, max(s) AS m FROM s GROUP BY c) SELECT a.c, a.m, s.k FROM m a JOIN m b ON a.m >= b.m JOIN s ON s.s = b.m",
      2)).zipWithIndex.foreach { case ((name, sql, expected), number) =>
    test(s"$name is computed once, as in batch") {
      val plan = planOf(sql)
      withClue(plan.treeString) {
        assert(readings(plan) == expected)
        val ids = plan.collect { case writer: StateStoreWriter => writer.getStateInfo.operatorId }
        assert(ids.sorted == ids.indices.map(_.toLong))
      }
      withClue(sql) {
        val other = Seq(
          Variant(conf = Quick ++ Variant.Paged, restart = true),
          Variant(conf = Quick ++ Variant.RocksDB, restart = true),
          Variant(conf = Quick ++ Unshared))
        Share.check(oracle, program(sql), Seq(Variant(conf = Quick), other(number % other.size)))
      }
    }
  }

  test("a part is kept once, and so says the query's progress") {
    // `t` is a common table expression itself there
    val kept = records(Largest.replaceFirst("WITH", ","), t, keyAsJson, operator = 0)(
      Seq("+I 1 a 5", "+I 2 b 3"),
      Seq("-D 2 b 3"))
    assert(kept == Seq(Set("{\"k\":\"a\"}", "{\"k\":\"b\"}"), Set("{\"k\":\"a\"}")))
    withChanges(Largest) { (streams, running) =>
      streams.head.add("+I 1 a 5", "+I 2 b 3")
      running.next()
      val operators = running.progress.stateOperators.toSeq
      assert(
        operators.map(_.operatorName) ==
          Seq("changelogJoin", "changelogAggregate", "changelogAggregate"))
      assert(operators.forall(_.numShufflePartitions == 2) || operators.size == 3)
      // one source, each row of which is read once
      assert(running.progress.sources.map(_.numInputRows).toSeq == Seq(2L))
      val metadata = spark.read.format("state-metadata").load(running.checkpoint.getPath)
      assert(metadata.count() == 3)
    }
  }

  test("EXPLAIN CHANGELOG shows where a part is computed and where it is read again") {
    Seq(t, u).foreach { feed =>
      new RawStream(spark, s"raw_${feed.name}", s"op STRING, ${feed.columns}")
      spark.sql(feed.read(s"raw_${feed.name}", "op")).createOrReplaceTempView(feed.name)
    }
    val text = spark.sql(s"EXPLAIN CHANGELOG $Largest").collect().head.getString(0)
    assert(text.linesIterator.count(_.contains("computed once for its 2 readers")) == 1, text)
    assert(text.linesIterator.count(_.contains("read again, not computed again")) == 1, text)
    assert(text.linesIterator.count(_.contains("StreamingRelation")) == 1, text)
  }

  test("parts are apart where that is asked for, and where they only look alike") {
    Seq(
      // each is filtered by what the other keeps
      "SELECT a.k, b.k AS o FROM (SELECT k, sum(v) AS s FROM t WHERE k > 'a' GROUP BY k) a JOIN (SELECT k, sum(v) AS s FROM t WHERE k < 'c' GROUP BY k) b ON a.s = b.s",
      // two tables of the same columns
      "SELECT a.k, b.k AS o FROM (SELECT k, count(*) AS c FROM u GROUP BY k) a JOIN (SELECT k, count(*) AS c FROM (SELECT * FROM from_changelog(TABLE(raw_u), 'op')) GROUP BY k) b ON a.c = b.c")
      .foreach(sql => assert(readings(planOf(sql)) == 0, sql))
    spark.conf.set(Unshared.head._1, Unshared.head._2)
    try assert(readings(planOf(Largest)) == 0)
    finally spark.conf.unset(Unshared.head._1)
  }

  test("equal parts of several queries in one stream are computed once") {
    val whole = Totals + "SELECT k, s FROM s"
    val most = Totals + "SELECT 'most' AS k, max(c) AS s FROM s"
    def check(emitted: String, numReadings: Int, numWriters: Int): Unit = {
      val plan = planOfAll(emitted)
      withClue(plan.treeString) {
        assert(readings(plan) == numReadings)
        val ids = plan.collect { case writer: StateStoreWriter => writer.getStateInfo.operatorId }
        assert(ids.sorted == Seq.range(0L, numWriters.toLong))
      }
    }
    val both = s"${changes(whole)} UNION ALL ${changes(most)}"
    check(both, 1, 2)
    check(s"$both UNION ALL ${changes("SELECT k, w FROM u GROUP BY k, w")}", 1, 3)
    // A reader without before images asks for other changes.
    check(s"${changes(whole)} UNION ALL ${changes(most, mode = "upsert")}", 0, 3)
    // Equal columns of different tables
    val counts = "SELECT k, count(*) AS c FROM u GROUP BY k"
    check(s"${changes(counts)} UNION ALL ${changes(counts.replace(" u ", " t "))}", 0, 2)
    withEmitted(both) { (streams, running) =>
      streams.head.add("+I 1 a 5", "+I 2 b 3", "+I 3 b 1")
      assert(running.next() == Seq("a 5 insert", "b 4 insert", "most 2 insert"))
      assert(running.progress.sources.map(_.numInputRows).toSeq == Seq(3L))
      running.restart()
      streams.head.add("-D 3 b 1")
      val second = Seq(
        "b 3 update_postimage",
        "b 4 update_preimage",
        "most 1 update_postimage",
        "most 2 update_preimage")
      assert(running.next() == second)
      running.restart(repeats = true)
      assert(running.next() == second)
    }
  }

  test("a batch without rows of one of two tables is planned like any other") {
    withChanges(
      Totals + "SELECT s.k, s.s, c FROM s JOIN (SELECT max(s) AS m FROM s) ON s = m UNION ALL SELECT k, w, w FROM u") {
      (streams, running) =>
        streams.head.add("+I 1 a 5", "+I 2 b 3")
        assert(running.next() == Seq("a 5 1 insert"))
        streams.last.add("+I x 1")
        assert(running.next() == Seq("x 1 1 insert"))
        running.restart()
        streams.head.add("+I 3 b 4")
        assert(running.next() == Seq("a 5 1 delete", "b 7 2 insert"))
        running.restart(repeats = true)
        assert(running.next() == Seq("a 5 1 delete", "b 7 2 insert"))
        streams.last.add("-D x 1")
        assert(running.next() == Seq("x 1 1 delete"))
    }
  }

  Seq("retract", "append").foreach { mode =>
    test(s"a watermark reaches what reads a part again, in mode $mode") {
      val sql =
        ", w AS (SELECT window(ts, '10 minutes') AS w, k, sum(v) AS s FROM t GROUP BY window(ts, '10 minutes'), k) " +
          "SELECT w.start AS b, max(s) AS m FROM w GROUP BY w UNION ALL SELECT w.start, count(*) FROM w GROUP BY w, s"
      def run(conf: Map[String, String]): (Seq[Seq[String]], Seq[Long]) = {
        var state = Seq.empty[Long]
        var emitted = Seq.empty[Seq[String]]
        runningIn(mode, "k STRING, v INT, ts TIMESTAMP", sql, NoDataBatches ++ conf) {
          (stream, query) =>
            Seq(Seq(1, 2, 11), Seq(3, 25), Seq(26, 31), Seq(60), Seq(90)).foreach { minutes =>
              stream.add(minutes.map(number => s"k${number % 3} 1 ${minute(number)}"): _*)
              emitted :+= query.next()
              state :+= stateRowsNow(query)
            }
        }
        (emitted, state)
      }
      val (shared, rows) = run(Map.empty)
      val (apart, rowsApart) = run(Unshared)
      assert(shared == apart)
      assert(shared.flatten.nonEmpty)
      // what the watermark has passed is gone, also where a part is read again
      assert(rows.last < rows.max, rows)
      assert(rows.last < rowsApart.last && rowsApart.last < rowsApart.max, s"$rows $rowsApart")
    }
  }

  private def changes(sql: String, mode: String = "retract"): String =
    s"SELECT * FROM to_changelog(TABLE($sql), mode => '$mode')"

  private def withChanges(sql: String)(body: (Seq[RawStream], RunningChanges) => Unit): Unit =
    withEmitted(changes(sql))(body)

  private def withEmitted(
      emitted: String)(body: (Seq[RawStream], RunningChanges) => Unit): Unit = {
    val streams = Seq(t, u).map { feed =>
      val raw = new RawStream(spark, s"raw_${feed.name}", s"op STRING, ${feed.columns}")
      spark.sql(feed.read(s"raw_${feed.name}", "op")).createOrReplaceTempView(feed.name)
      raw
    }
    val running = new RunningChanges(spark.sql(emitted), QuickFileSystem.temporaryDirectory())
    try body(streams, running)
    finally running.stop()
  }
}

private object SharedPartsSuite {
  val Totals = "WITH s AS (SELECT k, sum(v) AS s, count(*) AS c FROM t GROUP BY k) "

  val Largest: String = Totals + "SELECT * FROM s WHERE s = (SELECT max(s) FROM s)"

  val NoDataBatches: Map[String, String] =
    Map("spark.sql.streaming.noDataMicroBatches.enabled" -> "true")

  val Quick: Map[String, String] =
    ChangelogSession.Interpreted + ("spark.sql.shuffle.partitions" -> "2")

  val Unshared: Map[String, String] =
    Map("spark.sql.changelog.shareEqualParts.enabled" -> "false")
}
