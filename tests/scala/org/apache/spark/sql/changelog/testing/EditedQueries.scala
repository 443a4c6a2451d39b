// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

/**
 * Two queries that are one edit apart.
 *
 * @param mode
 *   in which both give their changes
 * @param key
 *   in mode `upsert`, the columns that identify a row of either
 */
final case class EditedQueries(
    first: String,
    second: String,
    mode: String = "retract",
    key: Seq[String] = Nil) {

  def reversed: EditedQueries = copy(first = second, second = first)
}
