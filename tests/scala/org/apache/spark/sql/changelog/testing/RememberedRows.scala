// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable

import org.apache.spark.sql.Row

/**
 * The rows of a table that have come within some time. Of equal rows the one that came first is
 * forgotten first, and taken back first.
 *
 * @param ttl
 *   in ms
 */
private[testing] class RememberedRows(ttl: Long) {
  private val times = mutable.LinkedHashMap.empty[Row, Vector[Long]]
  private var latest = 0L

  /** What happens to the table at a time. */
  def add(changes: Seq[Change], time: Long): Unit = {
    // what is due leaves first
    at(time)
    changes.groupBy(_.row).foreach { case (row, same) =>
      val net = same.map(change => if (change.isRetraction) -1 else 1).sum
      val there = times.getOrElse(row, Vector.empty)
      times(row) = if (net < 0) there.drop(-net) else there ++ Vector.fill(net)(latest)
    }
  }

  /** Those that are still remembered; never asked of an earlier time than before. */
  def at(time: Long): Seq[Row] = {
    latest = math.max(latest, time)
    times.mapValuesInPlace((_, came) => came.filter(_ > latest - ttl))
    times.toSeq.flatMap { case (row, came) => came.map(_ => row) }
  }
}
