// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.memory

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.streaming.sources.{MemoryPlan, MemorySink}

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.sinks.{
  ChangelogBatch, ChangelogSink, ChangelogSinkProvider, SinkInput, SinkOptions
}

/**
 * Keeps the rows of a query in the driver's memory, as a temporary view with the query's name.
 *
 * For shells, notebooks and tests. The rows live as long as the process. A query fails if it
 * continues from the checkpoint of a previous process, because earlier changes are missing.
 */
class MemoryTableSink(session: SparkSession, options: SinkOptions)
    extends ChangelogSink(options.format) {
  private val view =
    options.required("queryName", "the name of the view is needed, as queryName(...)")
  private val place = s"${session.sessionUUID}/$view"
  @volatile private var shown: Option[CurrentRows] = None

  override protected def check(input: SinkInput): Unit = {
    if (input.lacksBeforeImages) input.key(options.key)
    if (shown.isEmpty) {
      val rows = CurrentRows.named(place)
      // Avoids an empty view before the first batch.
      if (rows.lastBatch.isEmpty) lastBatch.foreach { batch =>
        throw runtime(
          "CHANGELOG_SINK_MEMORY_LOST",
          "sink" -> format,
          "table" -> view,
          "batch" -> (batch + 1))
      }
      show(input, rows)
    }
  }

  /** Returns the last finished batch, if the location of the checkpoint is known. */
  private def lastBatch: Option[Long] = options
    .get("checkpointLocation")
    .orElse(session.sessionState.conf.checkpointLocation.map(new Path(_, view).toString))
    .flatMap(checkpoint => new BatchLogs(session, new Path(checkpoint)).lastDone)

  override def write(batch: ChangelogBatch): Unit = {
    val rows = continued(batch)
    val columns = batch.input.columns
    val marked =
      batch.changes.select(
        ChangelogBatch.columns(batch.input.columnNames) :+ batch.isRetraction: _*)
    val plan = marked.queryExecution.executedPlan
    val output = marked.queryExecution.analyzed.output
    val values = output.init
    val toRow = ExpressionEncoder(batch.schema).resolveAndBind().createDeserializer()
    val valuesOf = UnsafeProjection.create(values, output)
    def isRetraction(row: InternalRow) = row.getBoolean(values.size)
    def rowOf(row: InternalRow): Row = toRow(valuesOf(row))

    val changes = plan.executeCollect().iterator
    if (batch.input.lacksBeforeImages) {
      val key = batch.input.key(options.key).get
      val keyOf =
        keyProjection(key.map(name => values(columns.indexWhere(_.name == name))), output)
      // An inserted row may precede a deleted row of its key.
      val (gone, come) = changes.partition(isRetraction)
      rows.replace(
        batch.queryId,
        batch.batchId,
        gone.map(row => (keyOf(row).copy(), None)) ++
          come.map(row => (keyOf(row).copy(), Some(rowOf(row)))))
    } else {
      val keyOf = keyProjection(values, output)
      rows.count(
        batch.queryId,
        batch.batchId,
        changes.map(row => (keyOf(row).copy(), rowOf(row), if (isRetraction(row)) -1 else 1)))
    }
  }

  /** Equal keys have equal bytes. */
  private def keyProjection(key: Seq[Attribute], output: Seq[Attribute]): UnsafeProjection =
    UnsafeProjection.create(key.map(SparkRules.normalizeFloats), output)

  /** Returns the rows after the previous batch. */
  private def continued(batch: ChangelogBatch): CurrentRows = {
    val rows = shown.get
    val continues = rows.lastBatch.exists { case (queryId, batchId) =>
      queryId == batch.queryId && Seq(batch.batchId - 1, batch.batchId).contains(batchId)
    }
    if (continues || (batch.batchId == 0 && rows.lastBatch.isEmpty)) rows
    else if (batch.batchId == 0) {
      val empty = CurrentRows.reset(place)
      show(batch.input, empty)
      empty
    } else
      throw runtime(
        "CHANGELOG_SINK_MEMORY_LOST",
        "sink" -> format,
        "table" -> view,
        "batch" -> batch.batchId)
  }

  private def show(input: SinkInput, rows: CurrentRows): Unit = {
    shown = Some(rows)
    val columns = input.columns.map(_.newInstance())
    Dataset
      .ofRows(session, MemoryPlan(rows, columns))
      .createOrReplaceTempView(quoteIfNeeded(view))
  }
}

/**
 * The current rows of a query, in the form of Spark's memory sink.
 *
 * A reader sees the rows after one complete batch.
 */
class CurrentRows extends MemorySink {
  private val rows = mutable.LinkedHashMap.empty[UnsafeRow, CurrentRows.Counted]
  private var written: Option[(String, Long)] = None

  /** Returns the query and the number of the last applied batch. */
  def lastBatch: Option[(String, Long)] = synchronized(written)

  override def allData: Seq[Row] = synchronized {
    rows.values.flatMap(counted => Iterator.fill(counted.count)(counted.row)).toIndexedSeq
  }

  /** Adds and subtracts rows. A row is repeated by its count. */
  def count(queryId: String, batchId: Long, changes: Iterator[(UnsafeRow, Row, Int)]): Unit =
    apply(queryId, batchId) {
      changes.foreach { case (key, row, sign) =>
        val count = rows.get(key).map(_.count).getOrElse(0) + sign
        if (count == 0) rows -= key else rows(key) = CurrentRows.Counted(row, count)
      }
    }

  /** Replaces or deletes the rows of keys. */
  def replace(queryId: String, batchId: Long, changes: Iterator[(UnsafeRow, Option[Row])]): Unit =
    apply(queryId, batchId) {
      changes.foreach {
        case (key, Some(row)) => rows(key) = CurrentRows.Counted(row, 1)
        case (key, None) => rows -= key
      }
    }

  private def apply(queryId: String, batchId: Long)(body: => Unit): Unit = synchronized {
    if (!written.contains((queryId, batchId))) {
      body
      written = Some((queryId, batchId))
    }
  }
}

object CurrentRows {
  private case class Counted(row: Row, count: Int)

  /** The rows by name, for a restarted query. */
  private val tables = new java.util.concurrent.ConcurrentHashMap[String, CurrentRows]().asScala

  def named(name: String): CurrentRows = tables.getOrElseUpdate(name, new CurrentRows)

  /** Deletes the rows of a name. */
  def reset(name: String): CurrentRows = {
    val empty = new CurrentRows
    tables.put(name, empty)
    empty
  }
}

/** `writeStream.format("changelog-memory")`: keeps the rows of the query as a temporary view. */
class MemoryTableProvider extends ChangelogSinkProvider("changelog-memory") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new MemoryTableSink(session, options)
}
