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
    feed.name -> (if (feed.upsert) new UpsertTable(feed) else new RetractTable)
  }.toMap
  private val home = QuickFileSystem.temporaryDirectory().toPath
  private val emitted = mutable.ArrayBuffer.empty[Change]
  private var sql = program.sql
  private var checkpoint = home.resolve("checkpoint-0")
  private var result = new EmittedTable(variant)
  private var operators = new SameOperators
  private var numChanges = 0
  private var failsNext = false
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
    val now = emitted.drop(before).toSeq
    result.add(now)
    // where no batch has begun, there is no result yet
    if (compares && numBatches > 0) compare(now)
    now
  }

  /**
   * Lets another query go on from here, with a checkpoint of its own.
   *
   * @param changed
   *   that query, over the same feeds
   * @param keepsTarget
   *   whether it goes on with the rows there are, and else begins with none
   * @param fails
   *   whether its first batch fails once, after all its state has been written
   * @param prepare
   *   makes the other checkpoint, given the other query's changes, the checkpoint of this one, where the
   *   other is to be, and the rows there are
   */
  def goOnWith(changed: String, keepsTarget: Boolean, fails: Boolean)(
      prepare: (DataFrame, Path, Path, Option[DataFrame]) => Unit): Unit = {
    stopQuery()
    val held = if (keepsTarget) Some(batchResult()) else None
    sql = changed
    numChanges += 1
    val next = home.resolve(s"checkpoint-$numChanges")
    prepare(changes(sessions.next()), checkpoint, next, held)
    checkpoint = next
    operators = new SameOperators
    runs.clear()
    failsNext = fails
    if (!keepsTarget) result = new EmittedTable(variant)
  }

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

  private def start(): StreamingQuery = {
    val query = changes(sessions.next()).writeStream
      .option("checkpointLocation", checkpoint.toString)
      .foreachBatch { (batch: DataFrame, _: Long) =>
        if (failsNext) {
          failsNext = false
          batch.collect()
          throw new IllegalStateException("this batch was to fail once")
        }
        numBatches += 1
        result.columns = batch.columns.toSeq.init
        batch.collect().foreach { row =>
          emitted += Change(KindOf(row.getString(row.size - 1)), Row.fromSeq(row.toSeq.init))
        }
      }
      .start()
    running = Some(query)
    runs += query
    query
  }

  /** The changes the program's query gives, over streams. */
  private def changes(session: SparkSession): DataFrame = {
    program.feeds.foreach { feed =>
      val raw = s"${feed.name}_changes"
      TypedColumns(sources(feed.name).stream(session), rawSchema(feed))
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

private object ProgramRun {
  private val ChangeType = "_op"
  private val KindOf = RowKind.ChangeTypes.zip(RowKind.Symbols).toMap

  private def rawSchema(feed: Feed): StructType =
    StructType(StructField(ChangeType, StringType) +: feed.schema.fields)

  private def rawRow(change: Change): Row = Row.fromSeq(change.kind +: change.row.toSeq)
}
