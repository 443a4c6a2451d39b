// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.expressions.EvalMode

import org.apache.spark.sql.changelog.errors.{CheckpointErrors, SnapshotErrors}

/**
 * Refuses to go on with the state of a query that meant something else.
 *
 * What is below `to_changelog` must be what it was, but for what changes neither rows nor state:
 * names, the order of conditions, where a source has moved to, what happens instead of a failure.
 */
private[changelog] object CheckSameQuery {

  def apply(checkpoint: String, was: QueryRecord, is: QueryRecord): Unit = {
    if (!meanTheSame(was.lines, is.lines)) {
      val settings = changed(was.settings, is.settings)
      throw CheckpointErrors.otherQuery(
        checkpoint,
        difference(was.lines, is.lines) ++ settings ++ versions(was))
    }
    val moved = was.sources.zip(is.sources).exists { case (old, now) =>
      old != now && was.sources.contains(now)
    }
    if (moved) throw CheckpointErrors.otherSources(checkpoint, was.sources, is.sources)
  }

  /** Refuses other snapshots than those whose moments are decided on, where a batch is to read these. */
  def snapshots(checkpoint: String, was: QueryRecord, is: QueryRecord): Unit =
    if (was.snapshots != is.snapshots) throw SnapshotErrors.changed(checkpoint)

  /** Refuses a query whose operators are not those that began it. */
  def operators(checkpoint: String, was: QueryRecord, is: Seq[OperatorRecord]): Unit = {
    val (old, now) = (was.operators.map(_.line), is.map(_.line))
    if (!meanTheSame(old, now))
      throw CheckpointErrors.otherOperators(checkpoint, difference(old, now) ++ versions(was))
    // the node is the same, but this version of ours keeps other tables for it than the one that began
    val others = was.operators.zip(is).filter { case (old, now) => old.kinds != now.kinds }
    if (others.nonEmpty) {
      val (kept, keeps) = others.unzip
      throw CheckpointErrors.otherOperators(
        checkpoint,
        difference(kept.map(_.kept), keeps.map(_.kept)) ++ versions(was))
    }
  }

  private def meanTheSame(was: Seq[String], is: Seq[String]): Boolean =
    was.size == is.size && was.zip(is).forall { case (old, now) => means(old, now) }

  /**
   * Whether they are the same, but for expressions that failed where they now give something else. On
   * all rows that have come they have not failed, and so given the same.
   */
  private def means(was: String, is: String): Boolean = was == is || {
    val modes = Mode.findAllIn(was).toSeq.zip(Mode.findAllIn(is).toSeq)
    Mode.split(was).sameElements(Mode.split(is)) && modes.forall { case (old, now) =>
      old == now || old == s"mode=${EvalMode.ANSI}"
    }
  }

  /** As [[CanonicalExpression]] writes it outside of quoted texts. */
  private val Mode = EvalMode.values.mkString("(?<=[( ])mode=(", "|", ")(?=[,)])").r

  private def changed(was: Map[String, String], is: Map[String, String]): Seq[String] =
    RecordedSettings.changed(was, is).map { key =>
      s"$key: was ${was.getOrElse(key, "not set")}, is ${is.getOrElse(key, "not set")}"
    }

  /** With another version of Spark the same query may be another one: it has other rules. */
  private def versions(was: QueryRecord): Seq[String] =
    if (was.spark == SPARK_VERSION) Nil
    else Seq(s"Spark: was ${was.spark}, is $SPARK_VERSION")

  /** The lines from the first to the last that are not the same. */
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

  /** The part of a long line in which it differs from another. */
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
