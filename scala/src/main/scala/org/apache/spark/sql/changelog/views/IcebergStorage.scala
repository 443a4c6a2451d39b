// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.connector.catalog.{Table, TableChange}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import org.apache.spark.sql.changelog.compat.StreamLogs
import org.apache.spark.sql.changelog.connectors.delta.Delta
import org.apache.spark.sql.changelog.connectors.iceberg.{
  IcebergCommits, IcebergRelation, IcebergTable
}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.sinks.table.TableSink
import org.apache.spark.sql.changelog.sinks.{SinkInput, SinkOptions}
import org.apache.spark.sql.changelog.sources.tables.RowDelta
import org.apache.spark.sql.changelog.views.files.SnapshotVersions.{Version, marked}
import org.apache.spark.sql.changelog.views.files.Snapshots

/**
 * IcebergStorage: stores a view in an Iceberg table and merges each batch into the table once. The summary of a snapshot
 * has the query and the batch. Recomputed rows are staged as files, and replace all rows in one commit.
 *
 * A version is the sequence number of a snapshot.
 */
class IcebergStorage(session: SparkSession) extends CatalogStorage(session) {

  override def sink(view: MaterializedView): (String, Map[String, String]) =
    ("changelog-table", Map("table" -> view.sql, "countRows" -> "true"))

  override def check(view: MaterializedView, input: SinkInput): Unit = {
    val (format, options) = sink(view)
    new TableSink(new SinkOptions(format, options)).accept(input)
    ()
  }

  /** Does nothing, because the columns change together with the rows. */
  override protected def prepare(view: MaterializedView, columns: Seq[TableChange]): Unit = ()

  /** Changes the columns, the rows and the definition in one commit. */
  override protected def commit(
      view: MaterializedView,
      columns: Seq[TableChange],
      rows: Option[Version],
      properties: Seq[TableChange]): Unit =
    if (rows.nonEmpty || properties.nonEmpty) {
      icebergOf(view).commit(columns ++ properties, rows.map(version => overwrite(view, version)))
      // The session may have cached the rows, or the table as loaded before.
      session.catalog.refreshTable(view.sql)
    }

  /** Writes the rows of a version. Notes the generation, and the batch of the rows, if the rows are those of a batch. */
  private def overwrite(view: MaterializedView, version: Version)(table: Table): Unit = {
    val definition = ViewDefinition.fromProperties(version.properties).get
    val note = for {
      batch <- Snapshots.batchOf(new Path(version.path))
      query <- new StreamLogs(session, definition.checkpoint).queryId
    } yield IcebergCommits.ofBatch(query, batch)
    val notes =
      note.getOrElse(Map.empty) ++ IcebergCommits.ofGeneration(definition.folder.getName)
    val (catalog, name) = new ViewCatalog(session).ownerOf(view.name)
    val target = DataSourceV2Relation.create(
      table,
      Some(catalog),
      Some(name),
      CaseInsensitiveStringMap.empty)
    val rows = rowsOf(view, version).queryExecution.analyzed
    Delta.having(session, notes)(RefuseViewWrites.allow(session) {
      Dataset.ofRows(session, OverwriteByExpression.byName(target, rows, Literal.TrueLiteral))
      ()
    })
  }

  /** Adds a snapshot, so that an unfinished commit of the last holder fails. */
  override def fence(view: MaterializedView, term: Long): Unit = {
    super.fence(view, term)
    icebergOf(view).commit(Nil, None)
  }

  override def snapshotsOf(view: MaterializedView, queryId: String): LazyList[ViewSnapshot] = {
    val table = icebergOf(view)
    IcebergCommits.batches(table, queryId).to(LazyList).map { case (batch, snapshot) =>
      val rows = () => Dataset.ofRows(session, table.rows(session, Some(snapshot.id)))
      ViewSnapshot(batch, () => Option.when(table.has(Some(snapshot.id)))(rows()))
    }
  }

  override def version(view: MaterializedView): Long =
    icebergOf(view).history.nextOption().fold(0L)(_.number)

  override def lastVersion(view: MaterializedView): Option[Long] = icebergOf(view).snapshot

  /** Accepts compaction, and the loss of `since` by expiry. */
  override def writtenByOthers(
      view: MaterializedView,
      queryId: String,
      since: Option[Long]): Option[String] = since.flatMap { since =>
    val table = icebergOf(view)
    val (later, before) = table.history.toSeq.span(_.id != since)
    val isExpired = !table.has(Some(since)) && later.lastOption.exists(_.number > 1)
    val isForked = before.isEmpty && !isExpired
    if (isForked)
      Some(s"the table, whose rows no longer build on the snapshot $since of the last refresh")
    else later.find(IcebergCommits.isOfOthers).map(other => s"the snapshot ${other.id}")
  }

  override def changes(view: MaterializedView, from: Long, to: Option[Long]): DataFrame = {
    val table = icebergOf(view)
    val history = table.history.toSeq
    // The first snapshot of a table has the number 1. Without the snapshot before, changes are unknown.
    history.lastOption.map(_.number).filter(_ > 1).foreach { oldest =>
      if (from <= oldest && to.forall(from <= _))
        throw analysis(
          "CHANGELOG_VIEW_VERSION_GONE",
          "view" -> view.name,
          "version" -> from,
          "oldest" -> Option.when(history.size > 1)(oldest + 1),
          "newest" -> history.head.number)
    }
    val steps = history.zip(history.drop(1).map(Option(_)) :+ None).filter { case (snapshot, _) =>
      snapshot.changesRows && snapshot.number >= from && to.forall(snapshot.number <= _)
    }
    val none = Dataset.ofRows(session, table.rows(session, None))
    val changes = steps.reverse.map { case (snapshot, before) =>
      val rows = table.difference(before.map(_.id), Some(snapshot.id)).rows(session)
      marked(RowDelta.net(rows, rows.columns.toSeq.init), snapshot.number, snapshot.at)
    }
    changes.foldLeft(marked(RowDelta(none, none), 0, 0))(_.union(_))
  }

  override def changeStream(view: MaterializedView, from: Option[Long]): DataFrame =
    throw analysis(
      "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
      "view" -> view.sql,
      "clause" -> "STREAM changes of an Iceberg table",
      "advice" -> "Read changes(…) by versions, or create a view over this view.")

  private def icebergOf(view: MaterializedView): IcebergTable =
    IcebergRelation
      .newest(session, view.sql)
      .getOrElse(throw new IllegalStateException(s"${view.sql} is not an Iceberg table"))
}
