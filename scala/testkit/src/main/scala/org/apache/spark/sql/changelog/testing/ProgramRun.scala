// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.Path

import scala.collection.mutable

import org.apache.spark.sql.catalyst.plans.logical.AnalysisHelper
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.{
  MicroBatchExecution, StreamingQueryWrapper
}
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.streaming.{
  StreamingQuery, StreamingQueryException, StreamingQueryProgress
}
import org.apache.spark.sql.types.{StringType, StructField, StructType}
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.RowKind

/**
 * A run of a program in a variant. Each start creates the query from its text in a new session, as another
 * process would. Only sources and checkpoint stay.
 *
 * @param sessions
 *   the sessions for queries
 * @param compares
 *   whether the result is compared with batch Spark after every step
 */
private[testing] class ProgramRun(
    sessions: OracleSessions,
    program: Program,
    variant: Variant,
    compares: Boolean) {
  import ProgramRun._

  private val sources = program.feeds.zipWithIndex.map { case (feed, index) =>
    val kind = variant.sources(index % variant.sources.size)
    feed.name -> kind.open(sessions.batch, rawSchema(feed), feed.partitions)
  }.toMap
  private val tables = program.feeds.map { feed =>
    val table = if (feed.upsert) new UpsertTable(feed) else new RetractTable(feed.insertOnly)
    program.snapshots.getOrElse(feed.name, Nil).foreach(row => table.add(Change("+I", row)))
    feed.name -> table
  }.toMap
  private val home = QuickFileSystem.temporaryDirectory().toPath
  private val emitted = mutable.ArrayBuffer.empty[Seq[Change]]
  private val taken = mutable.Map.empty[Long, Seq[Change]]
  private var sql = program.sql
  private var feeds = program.feeds
  private var checkpoint = home.resolve("checkpoint-0")
  private var result = new EmittedTable(variant)
  private var operators = new SameOperators
  private var numChanges = 0
  private var failsNext = false
  private var endsNext = Option.empty[Ending]
  private var numBatches = 0
  private var numSteps = 0
  private var running: Option[StreamingQuery] = None
  private val runs = mutable.ArrayBuffer.empty[StreamingQuery]

  def step(step: Step): Seq[Change] = {
    val before = emitted.size
    running match {
      case Some(query) => locked(query)(arrive(step))
      case None => arrive(step)
    }
    endsNext.foreach { ending =>
      endsNext = None
      ending.within {
        try start(ending.conf).processAllAvailable()
        finally stopQuery()
      }
    }
    val query = running.getOrElse(start())
    if (failsNext) {
      try query.processAllAvailable()
      catch { case _: StreamingQueryException if !failsNext => stopQuery() }
    }
    val lasting = running.getOrElse(start())
    lasting.processAllAvailable()
    operators.check(lasting)
    numSteps += 1
    if (variant.restart && numSteps % 2 == 1) stopQuery()
    // a step may take several batches, each with a minimal changelog
    val batches = emitted.drop(before).toSeq
    batches.foreach(result.add)
    val now = batches.flatten
    // before the first batch, there is no result
    if (compares && numBatches > 0) compare(now)
    now
  }

  /**
   * Continues with another query and a new checkpoint. If creating the checkpoint fails, nothing changes.
   *
   * @param changed
   *   the other query, over the same tables
   * @param changedFeeds
   *   the feeds of the other query
   * @param keepsTarget
   *   whether the other query continues with the current rows, and not with an empty target
   * @param fails
   *   whether the first batch fails once, after its state has been written
   * @param ends
   *   interrupts the first run
   * @param prepare
   *   creates the new checkpoint, from the other query's changes, the old checkpoint, the path of the new
   *   checkpoint, and the current rows
   */
  def continueWith(
      changed: String,
      changedFeeds: Seq[Feed],
      keepsTarget: Boolean,
      fails: Boolean,
      ends: Option[Ending])(prepare: (DataFrame, Path, Path, Option[DataFrame]) => Unit): Unit = {
    stopQuery()
    val held = if (keepsTarget) Some(batchResult()) else None
    val next = home.resolve(s"checkpoint-${numChanges + 1}")
    val changes = changesOf(sessions.next(), changed, changedFeeds)
    prepare(changes, checkpoint, next, held)
    numChanges += 1
    sql = changed
    feeds = changedFeeds
    checkpoint = next
    taken.clear()
    operators = new SameOperators
    runs.clear()
    failsNext = fails
    endsNext = ends
    result = new EmittedTable(variant)
    held.foreach { rows =>
      result.columns = changes.columns.toSeq.init
      result.begin(inColumns(rows, changes.schema.init).collect())
    }
  }

  /**
   * Continues the query with another checkpoint.
   *
   * @param make
   *   creates the new checkpoint, in a session, from the old checkpoint
   */
  def continueFrom(make: (SparkSession, Path, Path) => Unit): Unit = {
    stopQuery()
    val next = home.resolve(s"checkpoint-${numChanges + 1}")
    make(sessions.next(), checkpoint, next)
    numChanges += 1
    checkpoint = next
  }

  /** Converts rows to the columns of a changed table. A new column has NULL. */
  private def inColumns(rows: DataFrame, columns: Seq[StructField]): DataFrame =
    rows.select(columns.map { column =>
      val known = rows.columns.contains(column.name)
      val value = if (known) rows.col(s"`${column.name}`") else lit(null)
      value.cast(column.dataType).as(column.name)
    }: _*)

  /** Whether a batch has run. */
  def hasBegun: Boolean = numBatches > 0

  /** The progress of the batches since the query started or was changed. */
  def progress: Seq[StreamingQueryProgress] = runs.toSeq.flatMap(_.recentProgress)

  def stop(): Unit = {
    stopQuery()
    sources.values.foreach(_.close())
    Utils.deleteRecursively(home.toFile)
  }

  private def stopQuery(): Unit = {
    running.foreach(_.stop())
    running = None
  }

  /** Holds back batches until every change of the step has arrived. */
  private def locked(query: StreamingQuery)(body: => Unit): Unit = query
    .asInstanceOf[StreamingQueryWrapper]
    .streamingQuery
    .asInstanceOf[MicroBatchExecution]
    .withProgressLocked(body)

  /** Adds the changes of a step to the sources. A source without an entry in the step stays idle. */
  private def arrive(step: Step): Unit = program.feeds.foreach { feed =>
    step.changes.get(feed.name).foreach { changes =>
      changes.foreach(tables(feed.name).add)
      sources(feed.name).add(changes.map(rawRow))
    }
  }

  private def start(conf: Map[String, String] = Map.empty): StreamingQuery = {
    val session = sessions.next()
    conf.foreach { case (key, value) => session.conf.set(key, value) }
    val query = changesOf(session, sql, feeds).writeStream
      .option("checkpointLocation", checkpoint.toString)
      .foreachBatch { (batch: DataFrame, id: Long) =>
        if (failsNext) {
          failsNext = false
          batch.collect()
          throw new IllegalStateException("this batch was to fail once")
        }
        numBatches += 1
        result.columns = batch.columns.toSeq.init
        take(
          id,
          batch.collect().toSeq.map { row =>
            Change(KindOf(row.getString(row.size - 1)), Row.fromSeq(row.toSeq.init))
          })
      }
      .start()
    running = Some(query)
    runs += query
    query
  }

  /** Records the changes of a batch. A rerun of the batch must emit the same changes. */
  private def take(batch: Long, changes: Seq[Change]): Unit = taken.get(batch) match {
    case Some(before) =>
      def sorted(changes: Seq[Change]) = changes.map(_.toString).sorted
      assert(sorted(before) == sorted(changes), s"batch $batch gives $changes, and gave $before")
    case None =>
      taken(batch) = changes
      emitted += changes
  }

  /** Returns the changes of a query over streams of the program's tables. */
  private def changesOf(session: SparkSession, sql: String, feeds: Seq[Feed]): DataFrame = {
    feeds.foreach { feed =>
      val raw = s"${feed.name}_changes"
      val arrived = TypedColumns(sources(feed.name).stream(session), rawSchema(feed))
      feed.watermark
        .fold(arrived) { case (column, delay) => arrived.withWatermark(column, delay) }
        .createOrReplaceTempView(raw)
      session.sql(feed.read(raw, ChangeType)).createOrReplaceTempView(feed.name)
    }
    program.createViews(session)
    val key =
      if (variant.key.isEmpty) "" else variant.key.mkString(", key => array('", "', '", "')")
    // Spark's check of subqueries in an aggregate compares nested subqueries of views by a transformation. In
    // tests only, Spark asserts that analysis rules do not call this transformation.
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      session.sql(s"SELECT * FROM to_changelog(TABLE($sql), mode => '${variant.mode}'$key)")
    }
  }

  private def compare(now: Seq[Change]): Unit = {
    val expected = RowMultiset.of(batch())
    if (result.rows != expected && isSurely(expected)) {
      throw new AssertionError(
        s"after ${now.mkString("\n  ", "\n  ", "\n")}the table is\n${result.rows}\nnot\n$expected")
    }
  }

  /** Returns whether batch Spark gives the same result while it keeps the order below a limit. */
  private def isSurely(expected: RowMultiset): Boolean =
    sessions.keepingLimits(RowMultiset.of(batch())) == expected

  private def batch(): Seq[Row] = batchResult().collect().toSeq

  private def batchResult(): DataFrame = {
    program.feeds.foreach { feed =>
      val table = tables(feed.name)
      dataFrame(table.rows, feed.schema).createOrReplaceTempView(feed.name)
      if (feed.upsert) checkBatchReads(feed, table)
    }
    program.createViews(sessions.batch)
    sessions.batch.sql(sql)
  }

  /** Checks that a batch `from_changelog` over the changes so far gives the same table. */
  private def checkBatchReads(feed: Feed, table: FeedTable): Unit = {
    val raw = s"${feed.name}_changes_so_far"
    dataFrame(table.changes.map(rawRow), rawSchema(feed)).createOrReplaceTempView(raw)
    val read = RowMultiset.of(sessions.batch.sql(feed.read(raw, ChangeType)).collect())
    val expected = RowMultiset.of(table.rows)
    assert(read == expected, s"a batch reads ${feed.name} as\n$read\nnot\n$expected")
  }

  private def dataFrame(rows: Seq[Row], schema: StructType): DataFrame =
    sessions.batch.createDataFrame(java.util.Arrays.asList(rows: _*), schema)
}

private[testing] object ProgramRun {

  /** Interrupts a run, as the end of its process would. */
  trait Ending {

    /** The settings of the run's session. */
    def conf: Map[String, String]

    /** Runs `run`, which may be interrupted. */
    def within(run: => Unit): Unit
  }

  private val ChangeType = "_op"
  private val KindOf = RowKind.ChangeTypes.zip(RowKind.Symbols).toMap

  private def rawSchema(feed: Feed): StructType =
    StructType(StructField(ChangeType, StringType) +: feed.schema.fields)

  private def rawRow(change: Change): Row = Row.fromSeq(change.kind +: change.row.toSeq)
}
