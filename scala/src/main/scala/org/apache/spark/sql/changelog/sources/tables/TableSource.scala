// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.connector.read.streaming.{Offset => AnyOffset, ReadLimit}
import org.apache.spark.sql.execution.streaming.Offset
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{AnalysisException, DataFrame => AnyDataFrame}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.sources.LatestOffsetSource

/**
 * TableSource: streams the changes of a table between versions. The first batch has all rows.
 *
 * A query over the available data chooses the versions of its tables before the first read.
 */
private[tables] class TableSource(
    session: SparkSession,
    table: FollowedTable,
    override val schema: StructType)
    extends LatestOffsetSource {

  /** The snapshot to read up to, if chosen at the start. */
  private var decided: Option[table.TableSnapshot] = None

  override def prepareForTriggerAvailableNow(): Unit = decided = Some(table.now())

  override def latestOffset(start: AnyOffset, limit: ReadLimit): AnyOffset = {
    val from = Option(start).map(versionOf)
    try table.version(from, decided.getOrElse(table.now()))
    catch {
      // Another process may have refreshed this view since the shared snapshot.
      case _: AnalysisException if SharedVersions.forget(session, table.name) =>
        val now = table.now()
        decided = decided.map(_ => now)
        table.version(from, now)
    }
  }

  override def deserializeOffset(json: String): AnyOffset = TableVersion.parse(json)

  override def getBatch(start: Option[Offset], end: Offset): AnyDataFrame = {
    val from = start.map(versionOf)
    val until = versionOf(end)
    Dataset.ofRows(session, TableRows(toAttributes(schema), () => read(from, until)))
  }

  override def commit(end: Offset): Unit = table.forget(versionOf(end))

  override def stop(): Unit = ()

  override def toString: String = s"table ${table.name}"

  private def read(from: Option[TableVersion], until: TableVersion): LogicalPlan = from match {
    case Some(from) => table.changes(from, until)
    case None if table.tracksOnlyInserts => table.rows(until)
    case None =>
      val rows = table.rows(until)
      val insert = Alias(Literal("insert"), RowKind.ChangeTypeColumnName)()
      Project(rows.output :+ insert, rows)
  }

  private def versionOf(offset: AnyOffset): TableVersion = offset match {
    case version: TableVersion => version
    case other => TableVersion.parse(other.json)
  }
}
