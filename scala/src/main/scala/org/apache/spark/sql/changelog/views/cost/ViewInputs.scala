// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.cost

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.sources.tables.{
  FollowedTables,
  FollowedWay,
  TableSize,
  TableVersion
}

/** The tables that a view has read, as its checkpoint names them, and how they are followed. */
class ViewInputs(session: SparkSession, checkpoint: Path, followed: Seq[FollowedWay])
    extends Logging {
  private val ways = followed.map(way => way.name -> way).toMap

  /**
   * How much they hold now, and how much of that has changed since they were read. None if that can't
   * be told, or if other sources are among them: nobody knows whether those can be read once more.
   */
  def size: Option[TableSize] =
    try {
      val sizes = new BatchLogs(session, checkpoint).lastRead.map { case (folder, offset) =>
        for {
          version <- TableVersion.find(offset)
          way <- ways.get(version.table)
          size <- FollowedTables.sizeOf(session, way, version, folder)
        } yield size
      }
      Option.when(sizes.nonEmpty && sizes.forall(_.nonEmpty)) {
        val known = sizes.flatten
        TableSize(known.map(_.inAll).sum, known.map(_.changed).sum)
      }
    } catch {
      // the refresh meets the same, and tells it
      case NonFatal(error) =>
        logInfo(log"How much has changed can't be told", error)
        None
    }
}
