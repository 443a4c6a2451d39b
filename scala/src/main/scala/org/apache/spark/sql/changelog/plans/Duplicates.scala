// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

/** What to do where a source gives a second row of a key, whose first is still there. */
sealed abstract class Duplicates(override val toString: String)

object Duplicates {

  /** The key is taken for one: nothing is kept to look it up. */
  case object Trust extends Duplicates("trust")

  /** Both rows are rows of the table; duplicates are counted, and a warning tells of the first. */
  case object Warn extends Duplicates("warn")

  case object Fail extends Duplicates("fail")

  val values: Seq[Duplicates] = Seq(Trust, Warn, Fail)
}
