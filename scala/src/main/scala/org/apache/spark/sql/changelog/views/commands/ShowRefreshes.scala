// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import java.sql.Timestamp

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.views.history.{
  RefreshEstimate,
  RefreshHistory,
  RefreshRecord
}

/** `SHOW REFRESHES OF v`: those that are remembered, the newest first. */
case class ShowRefreshes(name: Seq[String]) extends ViewCommand {

  override val output: Seq[Attribute] = toAttributes(ShowRefreshes.schema)

  override protected def runIn(session: SparkSession): Seq[Row] =
    RefreshHistory.ofView(session, find(session, name)).all.map(row)

  private def row(record: RefreshRecord): Row = Row(
    new Timestamp(record.started),
    record.millis / 1000.0,
    record.mode,
    record.reason,
    record.state,
    record.versions,
    record.rowsRead.getOrElse(null),
    record.rowsWritten.getOrElse(null),
    record.rowsTakenBack.getOrElse(null),
    record.stateRows.getOrElse(null),
    record.stateBytes.getOrElse(null),
    record.estimate.map(ShowRefreshes.row).orNull,
    record.error.orNull)
}

object ShowRefreshes {
  private def row(estimate: RefreshEstimate): Row = Row(
    estimate.incrementalSeconds.getOrElse(null),
    estimate.fullSeconds.getOrElse(null),
    estimate.bytesChanged.getOrElse(null),
    estimate.bytesInAll)

  private val schema = StructType.fromDDL("""
    started TIMESTAMP, seconds DOUBLE, mode STRING, reason STRING, state STRING,
    versions MAP<STRING, STRING>, rows_read BIGINT, rows_written BIGINT, rows_taken_back BIGINT,
    state_rows BIGINT, state_bytes BIGINT,
    estimate STRUCT<incremental_seconds: DOUBLE, full_seconds: DOUBLE, bytes_changed: BIGINT,
    bytes_in_all: BIGINT>, error STRING""")
}
