// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/** Small texts that are kept beside a view; each is there whole, or not at all. */
object ViewFile {
  def write(session: SparkSession, path: Path, text: String): Unit = {
    val files = manager(session, path)
    files.mkdirs(path.getParent)
    val out = files.createAtomic(path, overwriteIfPossible = true)
    try out.write(text.getBytes(UTF_8))
    catch {
      case error: Throwable =>
        out.cancel()
        throw error
    }
    out.close()
  }

  /** None if there is none, any more or yet. */
  def read(session: SparkSession, path: Path): Option[String] =
    try {
      val in = manager(session, path).open(path)
      try Some(new String(in.readAllBytes(), UTF_8))
      finally in.close()
    } catch { case _: FileNotFoundException => None }

  private def manager(session: SparkSession, path: Path): CheckpointFileManager =
    CheckpointFileManager.create(path.getParent, session.sessionState.newHadoopConf())
}
