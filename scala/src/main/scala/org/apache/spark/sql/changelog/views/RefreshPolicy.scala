// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

/** How a view is brought up to date. */
sealed abstract class RefreshPolicy(override val toString: String)

object RefreshPolicy {

  /** By changes if the query reads a stream or tables that can be followed, else in full. */
  case object Auto extends RefreshPolicy("auto")

  /** By changes; a query that reads nothing whose changes can be told is refused. */
  case object Incremental extends RefreshPolicy("incremental")

  /** From scratch, each time. */
  case object Full extends RefreshPolicy("full")

  val values: Seq[RefreshPolicy] = Seq(Auto, Incremental, Full)
}
