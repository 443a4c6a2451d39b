// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.UUID

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.views.history.RefreshHistory

/**
 * How the rows of a view are stored, so that whoever reads it by its name sees the rows after a
 * whole batch.
 *
 * What is computed anew is staged in a generation of its own, next to the rows that are shown, and
 * replaces them at once, together with the definition.
 */
trait ViewStorage {

  /** Makes the table, without rows. */
  def create(name: TableIdentifier, schema: StructType, definition: ViewDefinition): KeptView

  /** The sink that keeps the view current, and its options. */
  def sink(view: KeptView): (String, Map[String, String])

  /** The sink that fills a generation which is not shown yet. */
  def stagingSink(view: KeptView): (String, Map[String, String])

  /** The rows that were staged, if any. */
  def staged(view: KeptView): Option[DataFrame]

  /**
   * Shows `rows` instead of what is shown, of the generation that `view` says.
   *
   * @param anew
   *   whether the view also has another definition, and maybe other columns
   */
  def replace(view: KeptView, rows: DataFrame, anew: Boolean): Unit

  /** Completes what a process has left half done. */
  def settle(view: KeptView): Unit

  /** Where generations lie. */
  def home(name: TableIdentifier): Path

  def drop(view: KeptView): Unit
}

object ViewStorage {
  def apply(session: SparkSession, provider: String): ViewStorage = provider.toLowerCase match {
    case "delta" => new DeltaStorage(session)
    case "parquet" | "orc" => new SnapshotStorage(session)
    case other => throw ViewErrors.providerNotSupported(other, Seq("delta", "parquet", "orc"))
  }

  /** A folder for a new generation of a view. */
  def newGeneration(home: Path): String = new Path(home, UUID.randomUUID.toString).toString

  /** Deletes what belongs to a view that is dropped. */
  def deleteAll(session: SparkSession, home: Path): Unit = {
    val files = home.getFileSystem(session.sessionState.newHadoopConf())
    files.delete(new Path(home, RefreshHistory.Folder), true)
    deleteGenerations(session, home, Set.empty)
  }

  /** Deletes generations; what else may lie there is somebody else's. */
  def deleteGenerations(session: SparkSession, home: Path, except: Set[String]): Unit = {
    val files = home.getFileSystem(session.sessionState.newHadoopConf())
    if (files.exists(home)) {
      files.listStatus(home).map(_.getPath).foreach { path =>
        val isGeneration = Try(UUID.fromString(path.getName)).isSuccess
        if (isGeneration && !except.contains(path.getName)) files.delete(path, true)
      }
      if (files.listStatus(home).isEmpty) files.delete(home, false)
    }
  }
}
