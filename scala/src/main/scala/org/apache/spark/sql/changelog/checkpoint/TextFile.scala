// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/** A small text beside a checkpoint or a table; it is there whole, or not at all. */
class TextFile(path: Path, hadoopConf: Configuration) {
  private lazy val files = CheckpointFileManager.create(path.getParent, hadoopConf)

  def exists: Boolean = files.exists(path)

  def write(text: String): Unit = write(text, replace = true)

  /** False if it is there already. Of several who make it at once one does. */
  def create(text: String): Boolean =
    try {
      write(text, replace = false)
      true
    } catch { case _: FileAlreadyExistsException => false }

  private def write(text: String, replace: Boolean): Unit = {
    files.mkdirs(path.getParent)
    val stream = files.createAtomic(path, overwriteIfPossible = replace)
    try {
      stream.write(text.getBytes(UTF_8))
      stream.close()
    } catch {
      case error: Throwable =>
        stream.cancel()
        throw error
    }
  }

  def read(): String =
    Using.resource(files.open(path))(stream => new String(stream.readAllBytes(), UTF_8))

  /** None if there is none, any more or yet. */
  def find(): Option[String] =
    try Some(read())
    catch { case _: FileNotFoundException => None }
}
