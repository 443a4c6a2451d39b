// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.Path

import scala.collection.mutable

import org.apache.spark.sql.catalyst.plans.logical.AnalysisHelper
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.{
  MicroBatchExecution,
  StreamingQueryWrapper
}
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.streaming.{
  StreamingQuery,
  StreamingQueryException,
  StreamingQueryProgress
}
import org.apache.spark.sql.types.{StringType, StructField, StructType}
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.RowKind

/**
 * A program whose query runs, in one way. Each start makes the query from its text in a session that
 * has seen nothing before, as a process would that takes it on; only sources and checkpoint stay.
 *
 * @param sessions
 *   the sessions it needs
 * @param compares
 *   whether every step's result is held against batch Spark
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
    val table = if (feed.upsert) new UpsertTable(feed) else new RetractTable
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
    // a step may take several batches, each of which says no more than it must
    val batches = emitted.drop(before).toSeq
    batches.foreach(result.add)
    val now = batches.flatten
    // where no batch has begun, there is no result yet
    if (compares && numBatches > 0) compare(now)
    now
  }

  /**
   * Lets another query go on from here, with a checkpoint of its own. If that can't be made, all is as before.
   *
   * @param changed
   *   that query, over the same tables
   * @param changedFeeds
   *   how it reads these
   * @param keepsTarget
   *   whether it goes on with the rows there are, and else begins with none
   * @param fails
   *   whether its first batch fails once, after all its state has been written
   * @param ends
   *   what ends its first run on the way
   * @param prepare
   *   makes the other checkpoint, given the other query's changes, the checkpoint of this one, where the
   *   other is to be, and the rows there are
   */
  def goOnWith(
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
   * Lets the query go on with another checkpoint.
   *
   * @param make
   *   makes that, in a session, of the one before
   */
  def goOnFrom(make: (SparkSession, Path, Path) => Unit): Unit = {
    stopQuery()
    val next = home.resolve(s"checkpoint-${numChanges + 1}")
    make(sessions.next(), checkpoint, next)
    numChanges += 1
    checkpoint = next
  }

  /** The rows of a table that has got other columns: NULL, where it had none of the name. */
  private def inColumns(rows: DataFrame, columns: Seq[StructField]): DataFrame =
    rows.select(columns.map { column =>
      val known = rows.columns.contains(column.name)
      val value = if (known) rows.col(s"`${column.name}`") else lit(null)
      value.cast(column.dataType).as(column.name)
    }: _*)

  /** Whether any batch has been run. */
  def hasBegun: Boolean = numBatches > 0

  /** What the batches of the query have told, since it was begun or is another one. */
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

  /** No batch begins before everything that arrives together has arrived. */
  private def locked(query: StreamingQuery)(body: => Unit): Unit = query
    .asInstanceOf[StreamingQueryWrapper]
    .streamingQuery
    .asInstanceOf[MicroBatchExecution]
    .withProgressLocked(body)

  /** What the step says nothing of gets nothing: its source is idle. */
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

  /** Takes what a batch gives; one that is run again must give the same again. */
  private def take(batch: Long, changes: Seq[Change]): Unit = taken.get(batch) match {
    case Some(before) =>
      def sorted(changes: Seq[Change]) = changes.map(_.toString).sorted
      assert(sorted(before) == sorted(changes), s"batch $batch gives $changes, and gave $before")
    case None =>
      taken(batch) = changes
      emitted += changes
  }

  /** The changes a query over the program's tables gives, over streams. */
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
    // Spark's check of subqueries in an aggregate compares those over views that hold others by a
    // transformation which it asserts, in tests only, not to be made by rules of the analysis
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

  /** Whether batch Spark gives this result also where it keeps the order that a limit was written for. */
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

  /** A batch `from_changelog` over everything so far must give the same table. */
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

  /** What ends a run on the way, as if its process had ended. */
  trait Ending {

    /** With these settings of its session. */
    def conf: Map[String, String]

    /** Does something that may be ended. */
    def within(run: => Unit): Unit
  }

  private val ChangeType = "_op"
  private val KindOf = RowKind.ChangeTypes.zip(RowKind.Symbols).toMap

  private def rawSchema(feed: Feed): StructType =
    StructType(StructField(ChangeType, StringType) +: feed.schema.fields)

  private def rawRow(change: Change): Row = Row.fromSeq(change.kind +: change.row.toSeq)
}
