// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

/** What a rank keeps of the rows it does not show. */
sealed abstract class RankStrategy(override val toString: String)

object RankStrategy {

  /** Nothing, nor what it shows: the first rows to come stay, so that it is enough to count. */
  case object FirstCome extends RankStrategy("first-come")

  /** Nothing: over rows that only come, a row beyond the last rank never gets a better one. */
  case object AppendFast extends RankStrategy("append-fast")

  /** The earliest row until it is certain: then it is emitted, and only that is remembered. */
  case object Earliest extends RankStrategy("earliest")

  /** Nothing: a row that is updated only gets better, and then comes again. */
  case object UpdateFast extends RankStrategy("update-fast")

  /** All rows, since those that are shown may go. */
  case object Retract extends RankStrategy("retract")
}
