// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.compat.StreamLogs
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.savepoints._
import org.apache.spark.sql.changelog.views.history.RefreshHistory

/**
 * ViewImage: a view as of a batch: rows, state and definition.
 *
 * @param view
 *   the view at that time
 * @param checkpoint
 *   the checkpoint with the state of the batch
 * @param key
 *   key columns, if known
 */
class ViewImage private (
    session: SparkSession,
    val view: MaterializedView,
    val batch: Long,
    checkpoint: ForkableCheckpoint,
    val rows: DataFrame,
    val key: Option[Seq[String]]) {
  import ViewImage._

  /** The start of the batch in ms. The rows include the data delivered before. */
  def time: Option[Long] = checkpoint.timeOf(batch)

  /**
   * Gives a view the rows, the state and the query of this image. The rows and the state go into a new generation,
   * which becomes visible at once. The next refresh continues from the image's batch.
   *
   * @param mode
   *   the mode recorded in the view's history
   * @param named
   *   the folder of the new generation, if chosen before
   */
  def restore(
      creator: SparkSession,
      into: MaterializedView,
      mode: String,
      reason: String,
      named: Option[String] = None): Unit =
    RefreshHistory.ofView(creator, into).remember { report =>
      report.isFor(mode, reason)
      time.foreach(report.isAsOf)
      val layout = DeltaLayout.of(creator, into, view.schema)
      val generation = named.getOrElse(ViewStorage.newGeneration(into.definition.home))
      val definition =
        into.definition.withQueryOf(view.definition).copy(generation = Some(generation))
      val restored = MaterializedView(into.name, view.schema, definition, layout)
      val storage = ViewStorage(ViewQuery.sessionFor(creator, definition), restored)
      val retention = definition.retention
      ViewStorage.discarding(creator, restored) {
        fork(restored.definition.checkpoint)
        val how =
          if (restored.beginsWithColumnsOf(into)) Replacement.DifferingRows(key)
          else Replacement.RecreateTable
        val staged = storage.stage(restored, rows, batch)
        new ReplaceRows(creator, storage, report)(restored, staged, how)
      }
      ViewStorage.retire(creator, restored, into, retention)
    }

  /**
   * Creates the checkpoint from which a view continues. Sinks need no note of the origin, because the rows go to the
   * view's own storage.
   */
  def fork(into: Path): Unit = checkpoint.fork(batch, into, noted = false)

  /** Writes the image into a folder, for [[ViewImage.read]]. */
  def write(folder: Path): Unit = {
    fork(Savepoints.checkpointIn(folder))
    rows.write.format(view.fileFormat).save(rowsIn(folder).toString)
    val noted =
      StoredImage(view.name.nameParts, view.definition.toProperties, view.schema.json, batch, key)
    file(session, folder).write(Serialization.write(noted))
  }
}

object ViewImage {
  private implicit val formats: Formats = Serialization.formats(NoTypeHints)

  private case class StoredImage(
      name: Seq[String],
      properties: Map[String, String],
      schema: String,
      batch: Long,
      key: Option[Seq[String]])

  /** Returns the image of a view at a restore point. */
  def apply(session: SparkSession, view: MaterializedView, at: RestorePoint): ViewImage =
    at.savepoint match {
      case Some(name) => read(session, savepointsOf(session, view).get(name).folder).get
      case None => ofBatch(session, view, at.batch)
    }

  /**
   * Returns a view as the owner of savepoints, which hold the view's rows beside the checkpoint. The view's query may
   * be running.
   */
  def savepointOwner(name: Seq[String]): SavepointOwner = SavepointOwner(name)(
    session => savepointsOf(session, new ViewCatalog(session).get(name)),
    (session, savepoint, batch) =>
      ViewLeases(session, name) { view =>
        val image = ViewImage(session, view, RestorePoint(batch))
        savepointsOf(session, view).create(savepoint, image.batch)(image.write)
      })

  /**
   * Returns the view's savepoints, which lie beside the generations, because a recomputation leaves the view's identity
   * as is.
   */
  def savepointsOf(session: SparkSession, view: MaterializedView): Savepoints =
    new Savepoints(session, new Path(view.definition.home, Savepoints.Folder), shown(view))

  /** Returns the image written into a folder, if complete. */
  def read(session: SparkSession, folder: Path): Option[ViewImage] =
    file(session, folder).find().map(Serialization.read[StoredImage](_)).map { noted =>
      val schema = DataType.fromJson(noted.schema).asInstanceOf[StructType]
      val name = noted.name match {
        case Seq(catalog, database, table) =>
          TableIdentifier(table, Some(database), Some(catalog))
        case parts => throw new IllegalStateException(s"not the name of a view: $parts")
      }
      val definition = ViewDefinition.fromProperties(noted.properties).get
      val view = MaterializedView(name, schema, definition)
      val rows =
        session.read.schema(schema).format(view.fileFormat).load(rowsIn(folder).toString)
      val checkpoint =
        new ForkableCheckpoint(session, Savepoints.checkpointIn(folder), shown(view))
      new ViewImage(session, view, noted.batch, checkpoint, rows, noted.key)
    }

  /** Returns a view after a batch of its current query, not necessarily the visible batch. */
  private def ofBatch(
      session: SparkSession,
      view: MaterializedView,
      batch: Option[Long]): ViewImage = {
    val query = new ViewQuery(session, view.definition)
    val path = view.definition.checkpoint
    if (!query.isStreaming) {
      throw analysis(
        "CHANGELOG_VIEW_HAS_NO_BATCHES",
        "view" -> view.name,
        "reason" -> "each refresh computes all its rows anew")
    }
    if (!path.getFileSystem(session.sessionState.newHadoopConf()).exists(path)) {
      throw analysis(
        "CHANGELOG_VIEW_HAS_NO_BATCHES",
        "view" -> view.name,
        "reason" -> "it has not been refreshed by changes yet")
    }
    ViewRefresh.computeState(session, view)
    val checkpoint = new ForkableCheckpoint(query.session, path, shown(view))
    val checked = checkpoint.checked(batch)
    val id = new StreamLogs(query.session, path).queryId.getOrElse("")
    val kept = ViewStorage(query.session, view).snapshotsOf(view, id)
    val rows = kept.find(_.since <= checked).flatMap(_.read()).getOrElse {
      val possible = checkpoint.possible.filter { batch =>
        kept.find(_.since <= batch).exists(_.read().nonEmpty)
      }
      throw ForkableCheckpoint.batchGone(
        shown(view),
        checked,
        "The view's rows after the batch are no longer stored.",
        possible)
    }
    new ViewImage(query.session, view, checked, checkpoint, rows, query.key)
  }

  private def shown(view: MaterializedView): String = s"the view ${view.sql}"

  private def rowsIn(folder: Path): Path = new Path(folder, "rows")

  private def file(session: SparkSession, folder: Path): TextFile =
    new TextFile(new Path(folder, "view.json"), session.sessionState.newHadoopConf())
}
