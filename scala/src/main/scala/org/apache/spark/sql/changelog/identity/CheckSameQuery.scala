// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.expressions.EvalMode

import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime

/**
 * Rejects a query whose meaning differs from the recorded query of the checkpoint.
 *
 * The plan below `to_changelog` must be equal. Differences without effect on rows and state are
 * allowed: names, the order of conditions, the location of a source, and the handling of
 * failures.
 */
private[changelog] object CheckSameQuery {

  def apply(checkpoint: String, was: QueryRecord, is: QueryRecord): Unit = {
    if (!haveEqualMeaning(was.lines, is.lines)) {
      val settings = changed(was.settings, is.settings)
      throw runtime(
        "CHANGELOG_QUERY_CHANGED",
        "checkpoint" -> checkpoint,
        "difference" -> (difference(was.lines, is.lines) ++ settings ++ versions(was))
          .mkString("\n"))
    }
    val moved = was.sources.zip(is.sources).exists { case (old, now) =>
      old != now && was.sources.contains(now)
    }
    if (moved)
      throw runtime(
        "CHANGELOG_SOURCES_CHANGED",
        "checkpoint" -> checkpoint,
        "was" -> was.sources,
        "is" -> is.sources)
  }

  /** Rejects changed snapshots, if a batch still has to read the recorded snapshots. */
  def snapshots(checkpoint: String, was: QueryRecord, is: QueryRecord): Unit =
    if (was.snapshots != is.snapshots)
      throw runtime("CHANGELOG_SNAPSHOT_CHANGED", "checkpoint" -> checkpoint)

  /** Rejects a query with operators different from the record. */
  def operators(checkpoint: String, was: QueryRecord, is: Seq[OperatorRecord]): Unit = {
    val (old, now) = (was.operators.map(_.line), is.map(_.line))
    if (!haveEqualMeaning(old, now))
      throw runtime(
        "CHANGELOG_QUERY_PLANNED_OTHERWISE",
        "checkpoint" -> checkpoint,
        "difference" -> (difference(old, now) ++ versions(was)).mkString("\n"))
    // The node is equal, but the current version of the extension stores different tables for the
    // node.
    val others = was.operators.zip(is).filter { case (old, now) => old.kinds != now.kinds }
    if (others.nonEmpty) {
      val (kept, keeps) = others.unzip
      throw runtime(
        "CHANGELOG_QUERY_PLANNED_OTHERWISE",
        "checkpoint" -> checkpoint,
        "difference" -> (difference(kept.map(_.kept), keeps.map(_.kept)) ++ versions(was))
          .mkString("\n"))
    }
  }

  private def haveEqualMeaning(was: Seq[String], is: Seq[String]): Boolean =
    was.size == is.size && was.zip(is).forall { case (old, now) => means(old, now) }

  /**
   * Whether two texts are equal, except for expressions that now return a value instead of
   * failing. The expressions have not failed so far, so results are equal.
   */
  private def means(was: String, is: String): Boolean = was == is || {
    val modes = Mode.findAllIn(was).toSeq.zip(Mode.findAllIn(is).toSeq)
    Mode.split(was).sameElements(Mode.split(is)) && modes.forall { case (old, now) =>
      old == now || old == s"mode=${EvalMode.ANSI}"
    }
  }

  /** The form of an evaluation mode in [[CanonicalExpression]], outside quoted texts. */
  private val Mode = EvalMode.values.mkString("(?<=[( ])mode=(", "|", ")(?=[,)])").r

  private def changed(was: Map[String, String], is: Map[String, String]): Seq[String] =
    RecordedSettings.changed(was, is).map { key =>
      s"$key: was ${was.getOrElse(key, "not set")}, is ${is.getOrElse(key, "not set")}"
    }

  /** Another version of Spark may optimize a query to another plan, because its rules differ. */
  private def versions(was: QueryRecord): Seq[String] =
    if (was.spark == SPARK_VERSION) Nil
    else Seq(s"Spark: was ${was.spark}, is $SPARK_VERSION")

  /** Returns the lines from the first to the last difference. */
  private def difference(was: Seq[String], is: Seq[String]): Seq[String] = {
    val numSame = was.zip(is).takeWhile { case (old, now) => old == now }.size
    val (old, now) = (was.drop(numSame), is.drop(numSame))
    val numEnd =
      old.reverse.zip(now.reverse).takeWhile { case (left, right) => left == right }.size
    val pairs = old.dropRight(numEnd).zipAll(now.dropRight(numEnd), "", "")
    def lines(label: String, line: ((String, String)) => (String, String)) =
      pairs.map(line).collect { case (text, other) if text.nonEmpty => label + part(text, other) }
    lines("was ", identity) ++ lines("is  ", _.swap)
  }

  /** Returns the differing part of a long line. */
  private def part(line: String, other: String): String =
    if (line.length <= LongestLine) line
    else {
      val numSame = line.zip(other).takeWhile { case (one, two) => one == two }.size
      val start = math.max(0, numSame - LongestLine / 4)
      val end = if (start + LongestLine < line.length) "…" else ""
      s"${if (start > 0) "…" else ""}${line.slice(start, start + LongestLine)}$end"
    }

  private val LongestLine = 400
}
