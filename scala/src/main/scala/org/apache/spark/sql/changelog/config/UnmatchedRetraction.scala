// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.config

import org.apache.spark.sql.internal.SQLConf

/** What to do when a change takes back a row that was never given. One policy everywhere. */
sealed abstract class UnmatchedRetraction(override val toString: String)

object UnmatchedRetraction {
  case object Ignore extends UnmatchedRetraction("ignore")
  case object Warn extends UnmatchedRetraction("warn")
  case object Fail extends UnmatchedRetraction("fail")

  val values: Seq[UnmatchedRetraction] = Seq(Ignore, Warn, Fail)

  def fromConf(conf: SQLConf): UnmatchedRetraction = {
    val name = conf.getConf(ChangelogConf.UNMATCHED_RETRACTION)
    values.find(_.toString == name).get
  }
}
