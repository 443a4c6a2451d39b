// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import java.io.{BufferedReader, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import org.apache.spark.sql.changelog.errors.CheckpointFileErrors

/**
 * Refuses a checkpoint that lacks a file of what a source of files has read, or has one that ends
 * before it should.
 *
 * Such a source keeps a log below `sources`: an entry for each batch it has had, and now and then
 * one with all before it (`9.compact`). It is read from the newest of those on.
 */
private class CheckSourceLogs(
    session: SparkSession,
    checkpoint: Path,
    files: CheckpointFileManager) {
  private val folder = new Path(checkpoint, "sources")

  def apply(offsets: Seq[Option[String]]): Unit = {
    val sources = names(folder).flatMap(_.toIntOption)
    val ends = offsets.map(_.collect { case LogOffset(end) => end.toLong })
    // of several that read one source only Spark knows whose folder is whose
    if (sources.maxOption.exists(_ + 1 == ends.size)) {
      sources.foreach(source => ends(source).foreach(check(new Path(folder, s"$source"), _)))
    }
    if (sources.isEmpty && ends.exists(_.isDefined)) {
      throw CheckpointFileErrors.logIncomplete(
        folder.toString,
        "a source has offsets of what it has noted there")
    }
  }

  private def check(log: Path, end: Long): Unit = {
    val entries = names(log)
    val start =
      entries.flatMap(Compacted.unapplySeq(_)).map(_.head.toLong).filter(_ <= end).maxOption
    val needed = start.map(batch => s"$batch.compact") ++
      (start.fold(0L)(_ + 1) to end).map(_.toString)
    needed.filterNot(entries).lastOption.foreach { missing =>
      throw CheckpointFileErrors.logIncomplete(
        new Path(log, named(missing.toLong)).toString,
        s"the source has had ${end + 1} batches")
    }
    needed.foreach(entry => ReadableFile(new Path(log, entry))(checkEnd))
  }

  /** Spark looks for an entry with all before it where this setting says. */
  private def named(batch: Long): String = {
    val interval = session.sessionState.conf.fileSourceLogCompactInterval
    if ((batch + 1) % interval == 0) s"$batch.compact" else batch.toString
  }

  /** A file that was cut short ends within a line, but for a chance. */
  private def checkEnd(entry: Path): Unit = {
    var last = Option.empty[String]
    Using.resource(new BufferedReader(new InputStreamReader(files.open(entry), UTF_8))) {
      reader =>
        reader.lines().iterator().asScala.foreach(line => last = Some(line))
    }
    ReadableFile.checkJson(last.getOrElse(throw new IllegalStateException("it is empty")))
  }

  private def names(folder: Path): Set[String] =
    if (!files.exists(folder)) Set.empty
    else files.list(folder).map(_.getPath.getName).toSet

  private val LogOffset = """\{"logOffset":(\d+)\}""".r
  private val Compacted = """(\d+)\.compact""".r
}
