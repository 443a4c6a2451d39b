// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

/** Takes note of retractions of rows that were never given. */
trait UnmatchedRetractions extends Serializable {
  def apply(count: Long, key: => String): Unit

  /** Takes note of those by which a row is taken back more often than it was given, if any. */
  final def note(before: Long, after: Long, key: => String): Unit = {
    val missing = UnmatchedRetractions.count(before, after)
    if (missing > 0) apply(missing, key)
  }
}

object UnmatchedRetractions {

  /**
   * How many retractions of a batch find no row, if a row was there `before` times and is there
   * `after` times: below 0 if it is taken back more often than it was given. Below 0 itself if rows
   * have come for such retractions.
   */
  def count(before: Long, after: Long): Long = math.max(0L, -after) - math.max(0L, -before)
}
