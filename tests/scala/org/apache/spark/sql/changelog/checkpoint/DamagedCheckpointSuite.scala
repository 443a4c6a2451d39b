// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import java.io.File
import java.nio.file.Files

import scala.jdk.CollectionConverters._

import org.apache.commons.io.FileUtils
import org.apache.hadoop.fs.LocalFileSystem
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS

import org.apache.spark.sql.changelog.testing._

/**
 * A checkpoint of which a file is truncated, flipped, emptied or missing: the query goes on with the
 * right rows, or says which file it is and what to do.
 */
class DamagedCheckpointSuite extends AnyFunSuite with ChangelogSession {
  private val settings = Map(
    "fs.file.impl" -> classOf[LocalFileSystem].getName,
    "fs.file.impl.disable.cache" -> "true",
    STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key ->
      "io.sparkchangelog.LocalCheckpointFileManager",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "1")

  override protected lazy val spark: SparkSession = {
    val session = ChangelogSession.start()
    settings.foreach { case (key, value) => session.conf.set(key, value) }
    session
  }

  /** Kinds of files, by where the newest, or the newest but one, of them is. */
  private val kinds: Seq[(String, String, Int)] = Seq(
    ("offsets", "offsets/\\d+", 0),
    ("offsets of the batch before", "offsets/\\d+", 1),
    ("commits", "commits/\\d+", 0),
    ("commits of the batch before", "commits/\\d+", 1),
    ("metadata", "metadata", 0),
    ("log of a source", "sources/0/\\d+", 0),
    ("schema of state", "state/\\d+/(0/)?_metadata/.*schema.*", 0),
    ("metadata of an operator", "state/\\d+/_metadata/metadata.*", 0))

  private val stateKinds: Seq[(String, String, Int)] = Seq(
    ("delta", "state/\\d+/0/\\d+\\.delta", 0),
    ("delta of the version before", "state/\\d+/0/\\d+\\.delta", 1),
    ("snapshot", "state/\\d+/0/\\d+\\.snapshot", 0))

  private val damages: Seq[(String, Array[Byte] => Option[Array[Byte]])] = Seq(
    "truncated" -> (bytes => Some(bytes.take(bytes.length / 2))),
    "flipped" -> (bytes =>
      Some(bytes.updated(bytes.length / 2, (bytes(bytes.length / 2) ^ 1).toByte))),
    "emptied" -> (_ => Some(Array.emptyByteArray)),
    "missing" -> (_ => None))

  private def find(checkpoint: File, pattern: String, before: Int): Option[File] = FileUtils
    .listFiles(checkpoint, null, true)
    .asScala
    .filter(file => checkpoint.toPath.relativize(file.toPath).toString.matches(pattern))
    .toSeq
    .sortBy(file => file.getName.takeWhile(_.isDigit).toLongOption.getOrElse(0L))
    .reverse
    .lift(before)

  /** As time does: the file is not newer than it was. */
  private def apply(damage: Array[Byte] => Option[Array[Byte]], file: File): Unit =
    damage(Files.readAllBytes(file.toPath)) match {
      case Some(bytes) =>
        val written = file.lastModified
        Files.write(file.toPath, bytes)
        assert(file.setLastModified(written))
      case None => assert(file.delete())
    }

  private def causes(error: Throwable): Seq[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq

  private def prepared(provider: Map[String, String]): CheckpointedQuery = {
    provider.foreach { case (key, value) => spark.conf.set(key, value) }
    val query = new CheckpointedQuery(spark)
    (1 to 14).foreach(_ => query.arrive())
    query.run()
    query.keep()
    // what comes after the damage
    query.arrive()
    query
  }

  /** Says what became of it: `right`, or what was complained of. */
  private def outcome(query: CheckpointedQuery, file: File): String = {
    val complaint =
      try {
        query.run()
        // and it stays so
        query.run()
        None
      } catch {
        case error: Exception =>
          val texts = causes(error).map(error => String.valueOf(error.getMessage))
          texts
            .find(isClear(_, file))
            .orElse(Some("NOT CLEAR " + texts.map(_.takeWhile(_ != '\n')).mkString(" | ")))
      }
    complaint.map(_.takeWhile(_ != '\n')).getOrElse {
      if (query.table == query.expected) "right" else "WRONG"
    }
  }

  /** Ours, or what Spark says of files that are not there. */
  private def isClear(text: String, file: File): Boolean =
    text.contains(file.getName) && text.contains("[CHANGELOG_CHECKPOINT_FILE_") ||
      !file.exists && Seq(
        "doesn't exist",
        "CONCURRENT_STREAM_LOG_UPDATE",
        "STREAMING_CHECKPOINT_MISSING_METADATA_FILE").exists(text.contains)

  private def check(
      title: String,
      kinds: Seq[(String, String, Int)],
      provider: Map[String, String]): Unit =
    test(title) {
      lazy val query = prepared(provider)
      try {
        val outcomes = for ((kind, pattern, before) <- kinds; (damage, change) <- damages) yield {
          query.restore()
          val file = find(query.checkpoint, pattern, before)
            .getOrElse(throw new AssertionError(s"no $kind in ${query.checkpoint}"))
          apply(change, file)
          s"$kind $damage: ${outcome(query, file)}"
        }
        outcomes.foreach(info(_))
        val bad = outcomes.filter(text => text.contains("WRONG") || text.contains("NOT CLEAR"))
        assert(bad.isEmpty, bad.mkString("\n", "\n", ""))
      } finally provider.keys.foreach(spark.conf.unset)
    }

  check("offsets, commits, metadata and schemas", kinds, Variant.Paged)
  check("state in pages", stateKinds, Variant.Paged)

  test("of two drivers on one checkpoint one goes on, and rows stay right") {
    val query = new CheckpointedQuery(spark)
    (1 to 20).foreach(_ => query.arrive())
    val drivers = (1 to 2).map { number =>
      val output = Files.createDirectory(query.folder.toPath.resolve(s"driver-$number"))
      val settings = ChildProcess.session(output) ++ Variant.Paged ++ Map(
        "spark.hadoop.fs.file.impl" -> classOf[LocalFileSystem].getName,
        STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key ->
          "io.sparkchangelog.LocalCheckpointFileManager")
      val process = new ChildProcess(CheckpointDriver, output)
        .start(ChildProcess.line(settings), query.folder.getPath, output.toString)
      (output, process)
    }
    drivers.foreach(_._2.waitFor())
    query.run()
    val all = drivers.map { case (output, _) =>
      output.toFile.listFiles.toSeq.filter(_.getName.forall(_.isDigit)).map { file =>
        file.getName.toLong -> Files.readString(file.toPath).linesIterator.toSeq.sorted
      }
    } :+ query.emitted.view.mapValues(_.sorted).toSeq
    val batches = all.flatten.groupMap(_._1)(_._2)
    batches.foreach { case (batch, rows) =>
      assert(rows.distinct.size == 1, s"batch $batch was not the same for both")
    }
    assert(FoldedChanges(batches.values.flatMap(_.head).toSeq) == query.expected)
    val errors = drivers.map(_._1.resolve("error")).filter(Files.exists(_)).map(Files.readString)
    info(errors.mkString("; "))
    errors.foreach(error => assert(error.toLowerCase.contains("concurrent"), error))
  }
}
