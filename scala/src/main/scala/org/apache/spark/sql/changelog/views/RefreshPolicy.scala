// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

/** How a view is brought up to date. */
sealed abstract class RefreshPolicy(override val toString: String) {

  /** Whether nothing is computed anew. */
  def isIncremental: Boolean =
    this == RefreshPolicy.Incremental || this == RefreshPolicy.Strict
}

object RefreshPolicy {

  /** By changes if the query reads a stream or tables that can be followed, else in full. */
  case object Auto extends RefreshPolicy("auto")

  /** By changes; a query that reads nothing whose changes can be told is refused. */
  case object Incremental extends RefreshPolicy("incremental")

  /** The same; where changes can't be told, one error says so, whatever the reason. */
  case object Strict extends RefreshPolicy("incremental strict")

  /** From scratch, each time. */
  case object Full extends RefreshPolicy("full")

  /** The one that a text names, whatever spaces it has. */
  def find(text: String): Option[RefreshPolicy] =
    values.find(_.toString.equalsIgnoreCase(text.trim.replaceAll("\\s+", " ")))

  val values: Seq[RefreshPolicy] = Seq(Auto, Incremental, Strict, Full)
}
