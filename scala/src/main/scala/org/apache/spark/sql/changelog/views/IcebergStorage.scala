// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}

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

  /** Keeps the rows of all batches in files before the columns change, to recover from a failure. */
  override def show(view: MaterializedView, path: Path): Unit = {
    for {
      shown <- new ViewCatalog(session).find(view.name) if !shown.hasColumnsOf(view)
      query <- new StreamLogs(session, shown.definition.checkpoint).queryId
      batch <- IcebergCommits.lastBatch(session, view.sql, query)
    } {
      val kept = Snapshots.newPath(shown.definition.rows, batch)
      write(shown, session.table(view.sql), kept)
      super.show(shown, kept)
    }
    super.show(view, path)
  }

  /** Notes the batch of the rows, if the rows are those of a batch. */
  override protected def overwrite(view: MaterializedView, version: Version): Unit = {
    val checkpoint = ViewDefinition.fromProperties(version.properties).get.checkpoint
    val note = for {
      batch <- Snapshots.batchOf(new Path(version.path))
      query <- new StreamLogs(session, checkpoint).queryId
    } yield IcebergCommits.ofBatch(query, batch)
    Delta.having(session, note.getOrElse(Map.empty))(super.overwrite(view, version))
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

  override def changes(view: MaterializedView, from: Long, to: Option[Long]): DataFrame = {
    val table = icebergOf(view)
    val history = table.history.toSeq
    val steps = history.zip(history.drop(1).map(Option(_)) :+ None).filter { case (snapshot, _) =>
      snapshot.changesRows && snapshot.number >= from && to.forall(snapshot.number <= _)
    }
    // The first snapshot of a table has the number 1. Expired snapshots leave a gap.
    steps.lastOption
      .filter { case (first, before) => before.isEmpty && first.number > 1 }
      .foreach { case (first, _) =>
        throw analysis(
          "CHANGELOG_VIEW_VERSION_GONE",
          "view" -> view.name,
          "version" -> from,
          "oldest" -> Some(first.number + 1),
          "newest" -> history.head.number)
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
