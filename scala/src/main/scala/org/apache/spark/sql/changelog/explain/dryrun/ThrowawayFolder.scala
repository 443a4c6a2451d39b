// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.dryrun

import java.util.UUID

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.util.Utils

/**
 * A folder for the checkpoint of a query that runs once: among those of other queries, if the session has a
 * place for them, which executors on other machines reach, too.
 */
private[dryrun] object ThrowawayFolder {

  def use[T](session: SparkSession)(body: Path => T): T = {
    val root = session.sessionState.conf.checkpointLocation
      .map(new Path(_))
      .getOrElse(new Path(Utils.createTempDir(namePrefix = "dry-run").toURI))
    val folder = new Path(root, s"dry-run-${UUID.randomUUID}")
    try body(folder)
    finally {
      folder.getFileSystem(session.sessionState.newHadoopConf()).delete(folder, true)
      ()
    }
  }
}
