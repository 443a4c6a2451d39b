// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.savepoints

import org.apache.hadoop.fs.Path

/**
 * StateVersions: the files of one state store by version, as named by the state store providers of Spark and of this
 * extension.
 *
 * {{{
 *   7.snapshot 8.delta 9.delta     in memory and in pages
 *   7.zip 8.changelog 9.changelog  RocksDB
 * }}}
 * A version consists of its newest snapshot, if any, and the later changes.
 */
private[savepoints] final class StateVersions(val folder: Path, names: Set[String]) {
  private val snapshots = numbered("snapshot", "zip")
  private val changes = numbered("delta", "changelog")

  /** Returns the files of a version, or None if some are missing. */
  def filesOf(version: Long): Option[Seq[String]] = {
    val starts = snapshots.keySet.filter(_ <= version) + 0L
    starts.toSeq.sorted.reverse
      .find(start => (start + 1 to version).forall(changes.contains))
      .map(start => snapshots.get(start).toSeq ++ (start + 1 to version).map(changes))
  }

  /**
   * Returns the files of a version if each attempt has separate files, or None if some are missing.
   *
   * {{{
   *   7_a.zip 8_b.changelog 9_c.changelog
   * }}}
   *
   * @param attempt
   *   the valid attempt
   * @param before
   *   reads the earlier versions and attempts from the changes of a version
   */
  def filesOf(
      version: Long,
      attempt: String,
      before: Path => Seq[(Long, String)]): Option[Seq[String]] = {
    val own = s"${version}_$attempt"
    if (names(s"$own.zip")) Some(Seq(s"$own.zip"))
    else if (!names(s"$own.changelog")) None
    else {
      val line = before(new Path(folder, s"$own.changelog")) :+ (version -> attempt)
      val named = line.map { case (number, id) => s"${number}_$id" }
      val start = named.lastIndexWhere(name => names(s"$name.zip"))
      val files = named.lift(start).map(name => s"$name.zip").toSeq ++
        named.drop(start + 1).map(name => s"$name.changelog")
      val isWhole = start >= 0 || line.head._1 == 1
      if (isWhole && files.forall(names)) Some(files) else None
    }
  }

  private def numbered(endings: String*): Map[Long, String] = names.flatMap { name =>
    name.split('.') match {
      case Array(number, ending) if endings.contains(ending) =>
        number.toLongOption.map(_ -> name)
      case _ => None
    }
  }.toMap
}
