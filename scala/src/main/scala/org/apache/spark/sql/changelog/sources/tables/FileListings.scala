// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/** A file at one moment. */
private[tables] case class ListedFile(path: String, length: Long, modified: Long)

/** The files a table had at the versions that are still needed, next to a checkpoint. */
private[tables] class FileListings(folder: Path, conf: Configuration) {
  private implicit val formats: Formats = Serialization.formats(NoTypeHints)
  private lazy val files = CheckpointFileManager.create(folder, conf)

  def write(version: Long, listed: Set[ListedFile]): Unit = {
    if (!files.exists(folder)) files.mkdirs(folder)
    val out = files.createAtomic(path(version), overwriteIfPossible = true)
    try out.write(Serialization.write(listed.toSeq.sortBy(_.path)).getBytes(UTF_8))
    catch {
      case error: Throwable =>
        out.cancel()
        throw error
    }
    out.close()
  }

  def read(version: Long): Set[ListedFile] = {
    val in = files.open(path(version))
    try Serialization.read[Seq[ListedFile]](new String(in.readAllBytes(), UTF_8)).toSet
    finally in.close()
  }

  def deleteBefore(version: Long): Unit =
    if (files.exists(folder)) {
      files.list(folder).map(_.getPath).foreach { path =>
        val number = path.getName.stripPrefix(Prefix).toLongOption
        if (path.getName.startsWith(Prefix) && number.exists(_ < version)) files.delete(path)
      }
    }

  private def path(version: Long): Path = new Path(folder, s"$Prefix$version")

  private val Prefix = "listing-"
}
