// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.json4s.JsonAST.JObject
import org.json4s.JsonDSL._

/**
 * A key that a large part of the rows have that an operator was given in a batch. What it says is
 * estimated from some of the rows.
 *
 * @param key
 *   its values: `city = Oslo, day = 3`
 * @param rows
 *   how many rows have it
 * @param share
 *   which part of all rows these are
 */
final case class HotKey(key: String, rows: Long, share: Double) {
  override def toString: String =
    f"$key: about $rows%,d rows, ${100 * share}%.0f%% of those in"

  def toJson: JObject = ("key" -> key) ~ ("rows" -> rows) ~ ("share" -> share)
}
