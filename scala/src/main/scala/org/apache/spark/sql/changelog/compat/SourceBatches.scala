// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{DataSource, FileFormat}
import org.apache.spark.sql.execution.streaming.runtime.{FileStreamSourceLog, StreamingRelation}

/** What sources of Spark's first kind would give a batch, as plans that nobody has run. */
object SourceBatches {

  /** What a stream is read by, if it is of that kind. */
  def sourceOf(stream: LogicalPlan): Option[DataSource] = stream match {
    case relation: StreamingRelation => Some(relation.dataSource)
    case _ => None
  }

  /** Whether a source goes through files, all of whose rows are given. */
  def readsFiles(source: DataSource): Boolean =
    classOf[FileFormat].isAssignableFrom(source.providingClass)

  /**
   * The files that such a source has given, as it has noted.
   *
   * @param folder
   *   its own, in a checkpoint
   */
  def filesGiven(session: SparkSession, folder: Path): Seq[Path] =
    new FileStreamSourceLog(FileStreamSourceLog.VERSION, session, folder.toString)
      .allFiles()
      .map(_.sparkPath.toPath)
      .toSeq
}
