// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.checkpoint

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.classic.SparkSession

/** Which batches of a query were begun, and which are done, as its checkpoint says. */
class BatchLogs(session: SparkSession, checkpoint: Path) {
  private val files: FileSystem = checkpoint.getFileSystem(session.sessionState.newHadoopConf())

  def lastBegun: Option[Long] = last("offsets")

  def lastDone: Option[Long] = last("commits")

  private def last(log: String): Option[Long] = {
    val folder = new Path(checkpoint, log)
    if (!files.exists(folder)) None
    else files.listStatus(folder).flatMap(_.getPath.getName.toLongOption).maxOption
  }
}
