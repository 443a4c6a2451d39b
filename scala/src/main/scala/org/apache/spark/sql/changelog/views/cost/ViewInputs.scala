// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.cost

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.connectors.delta.DeltaStreamOffset
import org.apache.spark.sql.changelog.sources.tables.{FollowedTables, TableSize, TableVersion}
import org.apache.spark.sql.changelog.views.{ViewCatalog, ViewQuery}

/** ViewInputs: the tables and views read by the query of a view, according to a checkpoint. */
class ViewInputs(query: ViewQuery, checkpoint: Path) extends Logging {
  private val session = query.session
  private val trackings = query.followed.map(tracking => tracking.name -> tracking).toMap

  /** The upstream views with a change feed: Delta tables. */
  private lazy val views = {
    val catalog = new ViewCatalog(session)
    query.views.toSeq.flatMap(catalog.find).filter(_.isDelta).map(_.sql)
  }

  /**
   * Returns the current size of the inputs, and the amount changed since the last read. Returns None if unknown, or for
   * inputs of another kind, such as views of files.
   */
  def size: Option[TableSize] =
    try {
      val sizes = new BatchLogs(session, checkpoint).lastRead.map { case (folder, offset) =>
        sizeOfTable(folder, offset).orElse(DeltaStreamOffset.find(offset).flatMap(sizeOfView))
      }
      Option.when(sizes.nonEmpty && sizes.forall(_.nonEmpty)) {
        val known = sizes.flatten
        TableSize(known.map(_.inAll).sum, known.map(_.changed).sum)
      }
    } catch {
      // The refresh will report the same error.
      case NonFatal(error) =>
        logInfo(log"How much has changed can't be told", error)
        None
    }

  private def sizeOfTable(folder: Path, offset: String): Option[TableSize] = for {
    version <- TableVersion.find(offset)
    tracking <- trackings.get(version.table)
    size <- FollowedTables.sizeOf(session, tracking, version, folder)
  } yield size

  private def sizeOfView(read: DeltaStreamOffset): Option[TableSize] =
    views.flatMap(FollowedTables.sizeOf(session, _, read)).headOption
}
