// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

/** What to do with records that can't be read. */
sealed abstract class OnError(override val toString: String)

object OnError {

  /** The query fails. */
  case object Fail extends OnError("fail")

  /** Records that can't be read are left out and counted. */
  case object Drop extends OnError("drop")

  /** Records that can't be read are given, with what is wrong, instead of the table. */
  case object Return extends OnError("return")

  val values: Seq[OnError] = Seq(Fail, Drop, Return)
}
