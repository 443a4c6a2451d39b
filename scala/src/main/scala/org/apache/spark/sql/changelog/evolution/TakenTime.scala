// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

/**
 * How long rows took once.
 *
 * @param what
 *   for people, such as `batch 7`
 */
final case class TakenTime(what: String, rows: Long, seconds: Double) {
  def secondsPerRow: Double = seconds / rows
}
