// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.scalatest.Suite

/** Runs queries over a stream of changes whose watermark follows ten minutes behind. */
trait TimedChanges extends ChangelogSession { self: Suite =>

  /** A time, so many minutes into a day. */
  protected def minute(number: Int): String =
    f"2026-01-01T${number / 60}%02d:${number % 60}%02d:00"

  /**
   * Runs a query while `body` adds rows and looks at what comes out.
   *
   * @param columns
   *   the columns of the changes; `op` is the change type, `ts` the event time
   * @param sql
   *   a query over the table `t`; it may begin with further common table expressions
   */
  protected def running(columns: String, sql: String, conf: Map[String, String])(
      body: (RawStream, RunningChanges) => Unit): Unit =
    runningIn("retract", columns, sql, conf)(body)

  /** The same in a mode of `to_changelog`; without an `op` the stream only inserts. */
  protected def runningIn(
      mode: String,
      columns: String,
      sql: String,
      conf: Map[String, String],
      emit: String = "changes")(body: (RawStream, RunningChanges) => Unit): Unit = {
    val before = conf.keys.toSeq.map(key => key -> spark.conf.getOption(key))
    conf.foreach { case (key, value) => spark.conf.set(key, value) }
    val stream = new RawStream(spark, "changes", columns)
    stream.toDF.withWatermark("ts", "10 minutes").createOrReplaceTempView("timed")
    val changeType = if (columns.startsWith("op ")) ", change_type => 'op'" else ""
    val query = new RunningChanges(
      spark.sql(s"""SELECT * FROM to_changelog(TABLE(WITH t AS (
           |SELECT * FROM from_changelog(TABLE(timed)$changeType)) $sql),
           |'$mode', emit => '$emit')""".stripMargin),
      QuickFileSystem.temporaryDirectory())
    try body(stream, query)
    finally {
      query.stop()
      before.foreach {
        case (key, Some(value)) => spark.conf.set(key, value)
        case (key, None) => spark.conf.unset(key)
      }
    }
  }

  /** The same for what is final: batches without data follow, in which it comes out. */
  protected def runningClosed(columns: String, sql: String, conf: Map[String, String])(
      body: (RawStream, RunningChanges) => Unit): Unit = runningIn(
    "append",
    columns,
    sql,
    conf + ("spark.sql.streaming.noDataMicroBatches.enabled" -> "true"))(body)

  protected def stateRows(query: RunningChanges): Long =
    query.progress.stateOperators.map(_.numRowsTotal).sum

  /** After the batch without data, if there was one. */
  protected def stateRowsNow(query: RunningChanges): Long =
    query.query.lastProgress.stateOperators.map(_.numRowsTotal).sum

  protected def droppedRows(query: RunningChanges): Long =
    query.progress.stateOperators.map(_.numRowsDroppedByWatermark).sum
}
