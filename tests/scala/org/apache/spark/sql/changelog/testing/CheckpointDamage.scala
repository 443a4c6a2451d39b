// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File
import java.nio.file.Files

import scala.jdk.CollectionConverters._

import org.apache.commons.io.FileUtils
import org.scalatest.funsuite.AnyFunSuite

/**
 * Damages a checkpoint's files one after the other: the query goes on with the right rows, or what
 * it fails with names the file and says what to do.
 */
trait CheckpointDamage extends ChangelogSession { this: AnyFunSuite =>
  import CheckpointDamage._

  protected val damages: Seq[Damage] = Seq(
    Damage("truncated", bytes => Some(bytes.take(bytes.length / 2))),
    Damage(
      "flipped",
      bytes => Some(bytes.updated(bytes.length / 2, (bytes(bytes.length / 2) ^ 1).toByte))),
    Damage("emptied", _ => Some(Array.emptyByteArray)),
    Damage("missing", _ => None))

  /** A query that has begun and has more to read. */
  private def prepared(shape: CheckpointedQuery.Shape): CheckpointedQuery = {
    val query = new CheckpointedQuery(spark, shape = shape)
    (1 to 14).foreach(_ => query.arrive())
    query.run()
    query.keep()
    // what comes after the damage
    query.arrive()
    query
  }

  protected def check(
      title: String,
      kinds: Seq[Kind],
      conf: Map[String, String],
      conditions: Set[String],
      damages: Seq[Damage] = damages,
      shape: CheckpointedQuery.Shape = CheckpointedQuery.Sums): Unit =
    test(title) {
      val before = conf.keys.map(key => key -> spark.conf.getOption(key))
      conf.foreach { case (key, value) => spark.conf.set(key, value) }
      try {
        val query = prepared(shape)
        val outcomes = for (kind <- kinds; damage <- damages) yield {
          query.restore()
          val file = find(query.checkpoint, kind).getOrElse(
            throw new AssertionError(s"no ${kind.name} in ${query.checkpoint}"))
          damage(file)
          s"${kind.name} ${damage.name}: ${outcome(query, file, conditions)}"
        }
        outcomes.foreach(info(_))
        val bad = outcomes.filter(text => text.contains("WRONG") || text.contains("NOT CLEAR"))
        assert(bad.isEmpty, bad.mkString("\n", "\n", ""))
      } finally
        before.foreach {
          case (key, Some(value)) => spark.conf.set(key, value)
          case (key, None) => spark.conf.unset(key)
        }
    }

  /** Says what became of it: `right`, or what was complained of. */
  private def outcome(query: CheckpointedQuery, file: File, conditions: Set[String]): String =
    try {
      query.run()
      // and it stays so
      query.run()
      if (query.table == query.expected) "right" else "WRONG"
    } catch {
      case error: Exception =>
        val text = String.valueOf(error.getMessage)
        if (isClear(text, file, conditions))
          text.drop(text.indexOf("[CHANGELOG_")).takeWhile(_ != '\n')
        else s"NOT CLEAR $text"
    }
}

object CheckpointDamage {

  /**
   * Files, the newest of which, or the one `before` newer ones, is damaged.
   *
   * @param pattern
   *   of their paths in the checkpoint
   */
  final case class Kind(name: String, pattern: String, before: Int = 0)

  final case class Damage(name: String, change: Array[Byte] => Option[Array[Byte]]) {

    /** As time does: the file is not newer than it was. */
    def apply(file: File): Unit = change(Files.readAllBytes(file.toPath)) match {
      case Some(bytes) =>
        val written = file.lastModified
        Files.write(file.toPath, bytes)
        file.setLastModified(written)
      case None => Files.delete(file.toPath)
    }
  }

  private def find(checkpoint: File, kind: Kind): Option[File] = FileUtils
    .listFiles(checkpoint, null, true)
    .asScala
    .filter(file => checkpoint.toPath.relativize(file.toPath).toString.matches(kind.pattern))
    .toSeq
    .sortBy(file => file.getName.takeWhile(_.isDigit).toLongOption.getOrElse(0L))
    .reverse
    .lift(kind.before)

  /** Ours, with the file's name; what Spark says of one file has it, too. */
  private def isClear(text: String, file: File, conditions: Set[String]): Boolean = {
    val ours =
      conditions.exists(name => text.contains(s"[$name]")) && text.contains("new checkpoint")
    // of RocksDB's files not everything tells which one it was
    val names = file.getName match {
      case name if name.endsWith(".sst") => Seq(name, "SSTs")
      case name if name.endsWith(".zip") => Seq(name, s"${name.takeWhile(_.isDigit)}.* (missing)")
      case name => Seq(name)
    }
    ours && names.exists(text.contains) ||
    text.contains("[STREAMING_CHECKPOINT_MISSING_METADATA_FILE]") ||
    // Spark's source refuses these itself
    file.getPath.contains("/sources/") && text.contains("[STREAM_FAILED]")
  }
}
