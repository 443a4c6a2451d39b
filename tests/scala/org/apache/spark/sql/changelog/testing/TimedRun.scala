// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File

import scala.collection.mutable

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.types.{StringType, StructField, StructType}
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.util.{ManualClock, Utils}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.checkpoint.BatchLogs

/**
 * A query over tables kept by changes that runs when a clock says that is set by hand. After each
 * step its result is held against batch Spark's at the time of the last batch, which the query's text
 * is given as a literal.
 *
 * @param sql
 *   with `now()`, `current_date()` and `localtimestamp()`, or words that mean the same
 * @param start
 *   what time it is at first, in ms
 * @param compares
 *   whether the result is held against batch Spark's
 * @param emit
 *   when changes are emitted
 * @param ttls
 *   for how long, in ms, batch Spark remembers rows of a feed that nothing changes
 */
class TimedRun(
    spark: SparkSession,
    feeds: Seq[Feed],
    sql: String,
    start: Long,
    variant: Variant = Variant(),
    compares: Boolean = true,
    ttls: Map[String, Long] = Map.empty,
    emit: String = "changes") {
  private val sessions = new OracleSessions(spark)
  private val checkpoint: File = QuickFileSystem.temporaryDirectory()
  private val clock = new ManualClock(start)
  private val tables = feeds.map(feed => feed.name -> new RetractTable(feed.insertOnly)).toMap
  private val remembered = ttls.map { case (name, ttl) => name -> new RememberedRows(ttl) }
  private val sources = feeds.map { feed =>
    feed.name -> InMemory.open(sessions.batch, rawSchema(feed), partitions = 2)
  }.toMap
  private val batches = mutable.SortedMap.empty[Long, Seq[Change]]
  private var columns = Seq.empty[String]
  private var running: Option[StreamingQuery] = None

  /** Lets time pass, and rows arrive. Gives the changes that come of it, sorted. */
  def step(passes: Long, changes: (Feed, Seq[String])*): Seq[String] = {
    clock.advance(passes)
    changes.foreach { case (feed, lines) =>
      val parsed = lines.map(TextChangelog.parse(_, feed.schema))
      parsed.foreach(tables(feed.name).add)
      remembered.get(feed.name).foreach(_.add(parsed, clock.getTimeMillis()))
      sources(feed.name).add(parsed.map(change => Row.fromSeq(change.kind +: change.row.toSeq)))
    }
    settle()
  }

  /** Sets the clock, which then may go back. */
  def setTime(time: Long): Unit = clock.setTime(time)

  /** Waits until nothing more happens, and compares. */
  def settle(): Seq[String] = {
    val before = batches.keySet.toSet
    query.processAllAvailable()
    if (compares) compare()
    batches.filterNot(batch => before(batch._1)).values.flatten.map(_.toString).toSeq.sorted
  }

  /** Starts the query anew from its checkpoint; `repeats` if its last batch is to be run again. */
  def restart(repeats: Boolean = false): Unit = {
    stop()
    if (repeats) {
      val commits =
        new File(checkpoint, "commits").listFiles().filter(_.getName.forall(_.isDigit))
      assert(commits.maxBy(_.getName.toLong).delete())
    }
  }

  def stop(): Unit = {
    running.foreach(_.stop())
    running = None
  }

  def close(): Unit = {
    stop()
    Utils.deleteRecursively(checkpoint)
  }

  def query: StreamingQuery = running.getOrElse {
    val started = begin(sessions.next())
    running = Some(started)
    started
  }

  def checkpointLocation: String = checkpoint.getPath

  private def begin(session: SparkSession): StreamingQuery = {
    feeds.foreach { feed =>
      sources(feed.name).stream(session).createOrReplaceTempView(s"${feed.name}_changes")
      session
        .sql(feed.read(s"${feed.name}_changes", "_op"))
        .createOrReplaceTempView(feed.name)
    }
    val key =
      if (variant.key.isEmpty) "" else variant.key.mkString(", key => array('", "', '", "')")
    val changes =
      session.sql(s"""SELECT * FROM to_changelog(
        |TABLE($sql), mode => '${variant.mode}'$key, emit => '$emit')""".stripMargin)
    columns = changes.columns.toSeq.init
    RunningChanges.start(changes, checkpoint, sink, clock)
  }

  private val sink: Sink = new Sink {
    override def addBatch(id: Long, data: DataFrame): Unit = {
      val changes = data.collect().toSeq.map { row =>
        Change(TimedRun.KindOf(row.getString(row.size - 1)), Row.fromSeq(row.toSeq.init))
      }
      batches.get(id).foreach { before =>
        assert(before.map(_.toString).sorted == changes.map(_.toString).sorted, s"batch $id")
      }
      batches(id) = changes
    }
  }

  /** Holds the table of all changes against batch Spark. */
  def compare(): Unit = if (batches.nonEmpty) {
    val result = new EmittedTable(variant)
    result.columns = columns
    batches.values.foreach(result.add)
    feeds.foreach { feed =>
      sessions.batch
        .createDataFrame(java.util.Arrays.asList(rowsOf(feed): _*), feed.schema)
        .createOrReplaceTempView(feed.name)
    }
    val expected = RowMultiset.of(sessions.batch.sql(atTimeOfBatch).collect().toSeq)
    assert(
      result.rows == expected,
      s": the table is\n${result.rows}\nnot\n$expected\nafter ${batches.lastOption}\n$atTimeOfBatch")
  }

  private def rowsOf(feed: Feed): Seq[Row] =
    remembered.get(feed.name).fold(tables(feed.name).rows)(_.at(timeOfBatch))

  private def atTimeOfBatch: String = {
    val time = s"timestamp_millis(${timeOfBatch}L)"
    TimedRun.Words
      .foldLeft(sql) { case (text, (word, meaning)) => text.replace(word, meaning) }
      .replace("now()", time)
      .replace("current_date()", s"CAST($time AS DATE)")
      .replace("localtimestamp()", s"CAST($time AS TIMESTAMP_NTZ)")
  }

  /** What time it was in the last batch, as the checkpoint says. */
  private def timeOfBatch: Long =
    new BatchLogs(spark, new Path(checkpoint.getPath)).timeOf(Long.MaxValue).get

  private def rawSchema(feed: Feed): StructType =
    StructType(StructField("_op", StringType) +: feed.schema.fields)
}

private object TimedRun {
  private val KindOf = RowKind.ChangeTypes.zip(RowKind.Symbols).toMap

  private val Words = Seq(
    "TIMESTAMP 'now'" -> "now()",
    "TIMESTAMP_NTZ 'now'" -> "localtimestamp()",
    "TIMESTAMP 'today'" -> "CAST(current_date() AS TIMESTAMP)",
    "TIMESTAMP_NTZ 'tomorrow'" -> "CAST(date_add(current_date(), 1) AS TIMESTAMP_NTZ)",
    "DATE 'today'" -> "current_date()",
    "DATE 'yesterday'" -> "date_sub(current_date(), 1)",
    "CAST('yesterday' AS DATE)" -> "date_sub(current_date(), 1)")
}
