// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.StagedFolder
import org.apache.spark.sql.changelog.errors.EvolutionErrors

/**
 * A checkpoint that is made of another one, beside the folder that it becomes: it is there whole or not at all.
 *
 * @param from
 *   the other one, which stays as it is
 * @param into
 *   a folder that is not there yet, or is empty
 */
private[evolution] class StagedCheckpoint(session: SparkSession, from: Path, into: Path) {
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files = into.getFileSystem(hadoopConf)
  private val staged = new StagedFolder(into, hadoopConf)
  private val folder = staged.folder

  /** Lets `write` fill a folder, which then is the checkpoint. */
  def make[T](write: Path => T): T =
    staged.fill(EvolutionErrors.checkpointExists(into.toString))(write)

  /** Copies what the other checkpoint has under a name, if it has it. */
  def copy(old: String, now: String): Unit = {
    val source = new Path(from, old)
    if (source.getFileSystem(hadoopConf).exists(source)) staged.copy(source, now)
  }

  /** Leaves out what has been copied. */
  def delete(name: String): Unit = {
    files.delete(new Path(folder, name), true)
    ()
  }
}
