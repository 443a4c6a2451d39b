// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.streaming.runtime.{MemoryStream, StreamingQueryWrapper}
import org.apache.spark.sql.execution.{ExpandExec, SparkPlan}

import org.apache.spark.sql.changelog.testing.{ChangelogSession, QuickFileSystem, RunningChanges}

/** Changes are combined by value as long as values repeat. */
class ValueCombiningSuite extends AnyFunSuite with ChangelogSession {
  private lazy val session = spark
  import session.implicits._

  private val numBatches = 3
  private val changesPerBatch = 24000
  private val combineValues = "spark.sql.changelog.aggregate.combineValues"

  /** How many changes tasks left as they were, of batches in which these decided about it. */
  private var singleChanges: Option[Long] = None

  private def planOf(running: RunningChanges): SparkPlan =
    running.query
      .asInstanceOf[StreamingQueryWrapper]
      .streamingQuery
      .lastExecution
      .executedPlan

  private def noteSingleChanges(running: RunningChanges): Unit =
    planOf(running).foreach {
      case byTask: ChangesByTaskExec =>
        singleChanges = Some(byTask.metrics("numSingleChanges").value)
      case _ =>
    }

  /** Whether each batch combined its values, and the result after the last one. */
  private def run(
      table: String,
      numValues: Int,
      setting: String,
      calls: String = "count(DISTINCT n), max(n), count(*)",
      inFiles: Boolean = false): (Seq[Boolean], String) = {
    session.conf.set(combineValues, setting)
    val input = MemoryStream[(String, Int)](2, session)
    val folder = QuickFileSystem.temporaryDirectory().getPath
    val rows =
      if (inFiles) session.readStream.schema("op STRING, n INT").parquet(folder) else input.toDF()
    rows.toDF("op", "n").createOrReplaceTempView("numbers")
    val running = new RunningChanges(
      session.sql(s"""SELECT * FROM to_changelog(TABLE(
          |SELECT $calls FROM from_changelog($table)))""".stripMargin),
      QuickFileSystem.temporaryDirectory())
    try {
      val batches = (0 until numBatches).map { batch =>
        val added = (0 until changesPerBatch).map { n =>
          ("insert", batch * numValues + n % numValues)
        }
        if (inFiles) added.toDF("op", "n").coalesce(1).write.mode("append").parquet(folder)
        else input.addData(added)
        val changes = running.next()
        val combines = planOf(running).collectFirst { case expand: ExpandExec => expand }
        noteSingleChanges(running)
        (combines.isDefined, changes.filterNot(_.contains("preimage")).mkString)
      }
      (batches.map(_._1), batches.last._2.split(" ").init.mkString(" "))
    } finally {
      running.stop()
      session.conf.unset(combineValues)
    }
  }

  private val total = numBatches * changesPerBatch
  private val different = s"$total ${total - 1} $total"
  private val onlyInserts = "TABLE(SELECT n FROM numbers)"

  test("values that hardly repeat are combined to look at them, and then no more") {
    assert(run(onlyInserts, changesPerBatch, "auto") == ((Seq(true, false, false), different)))
  }

  test("values that repeat are combined in every batch") {
    val result = s"30 29 $total"
    assert(run(onlyInserts, numValues = 10, "auto") == ((Seq(true, true, true), result)))
    assert(run(onlyInserts, numValues = 10, "never") == ((Seq(false, false, false), result)))
  }

  test("a first batch that one task could take is not combined, but looked at") {
    def runFiles(numValues: Int): (Seq[Boolean], String) =
      run(onlyInserts, numValues, "auto", inFiles = true)
    assert(runFiles(changesPerBatch) == ((Seq(false, false, false), different)))
    assert(runFiles(numValues = 10) == ((Seq(false, true, true), s"30 29 $total")))
  }

  test("a sample tells how many values there are, of each kind") {
    val calls = "count(DISTINCT n), count(DISTINCT n % 100), count(*)"
    def combines(numValues: Int): Seq[Boolean] =
      run(onlyInserts, numValues, "auto", calls, inFiles = true)._1
    assert(combines(changesPerBatch / 3) == Seq(false, true, true))
    assert(combines(changesPerBatch * 2 / 3) == Seq(false, false, false))
  }

  test(
    "all distinct values of a change are looked up together, and cost as much as one combined") {
    val calls = "count(DISTINCT n), count(DISTINCT -n), count(*)"
    val numValues = 8000
    assert(2 * numValues < changesPerBatch && 2 * numValues > changesPerBatch / 2)
    val result = s"${numBatches * numValues} ${numBatches * numValues} $total"
    assert(run(onlyInserts, numValues, "auto", calls) == ((Seq(true, false, false), result)))
  }

  private val changes = "TABLE(numbers), 'op'"

  test("about a large first batch each task decides by its first changes") {
    val calls = "min(n), max(n), count(*)"
    def runs(numValues: Int, result: String, single: Long): Seq[Boolean] = {
      singleChanges = None
      val (combined, last) = run(changes, numValues, "auto", calls)
      assert(last == result)
      assert(singleChanges.contains(single))
      combined
    }
    val differing = runs(changesPerBatch, s"0 ${total - 1} $total", single = changesPerBatch)
    assert(differing == Seq(true, false, false))
    assert(runs(numValues = 10, s"0 29 $total", single = 0) == Seq(true, true, true))
  }

  test("some tasks of a batch combine changes that come and go, others do not") {
    // every second row is of the same task
    val differing = (0 until 12000).map(i => (i % 50, i))
    val repeated = (0 until 12000).map(i => (i % 50, -(i % 7)))
    def gone(rows: Seq[(Int, Int)]) = rows.take(4000)
    val input = MemoryStream[(String, Int, Int)](3, session, Some(2))
    def add(op: String, rows: Seq[(Int, Int)]*): Seq[(String, Int, Int)] =
      rows.transpose.flatten.map { case (g, n) => (op, g, n) }
    def expected(rows: Seq[(Int, Int)]): Set[String] =
      rows
        .groupMap(_._1)(_._2)
        .map { case (g, n) => s"$g ${n.min} ${n.max} ${n.size} ${n.sum}" }
        .toSet
    input.toDF().toDF("op", "g", "n").createOrReplaceTempView("numbers")
    singleChanges = None
    val running = new RunningChanges(
      session.sql(s"""SELECT * FROM to_changelog(TABLE(
          |SELECT g, min(n), max(n), count(*), sum(n) FROM from_changelog($changes) GROUP BY g))""".stripMargin),
      QuickFileSystem.temporaryDirectory())
    def results(): Set[String] =
      running
        .next()
        .filterNot(_.contains("preimage"))
        .map(_.split(" ").init.mkString(" "))
        .toSet
    try {
      input.addData(
        add("insert", differing, repeated) ++ add("delete", gone(differing), gone(repeated)))
      val left = differing.drop(4000)
      assert(results() == expected(left ++ repeated.drop(4000)))
      noteSingleChanges(running)
      assert(singleChanges.contains(16000L))
      input.addData(add("delete", left))
      assert(results() == expected(repeated.drop(4000)))
    } finally running.stop()
  }

  test("distinct values that go are combined whatever is asked for") {
    assert(run(changes, changesPerBatch, "never") == ((Seq(true, true, true), different)))
  }
}
