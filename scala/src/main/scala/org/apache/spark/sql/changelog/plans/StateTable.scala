// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.config.ChangelogConf

/**
 * One table kept in an operator's state store, as EXPLAIN shows it.
 *
 * @param table
 *   what it is called, such as `groups` or `left rows`
 * @param key
 *   the columns it is looked up by
 * @param value
 *   what is kept per key
 * @param boundedBy
 *   what keeps it from growing for ever, such as `a watermark on ts`, or `unbounded`
 */
final case class StateTable(table: String, key: Seq[String], value: String, boundedBy: String) {

  /** Whether an entry stays until a change removes it. */
  def keepsAll: Boolean = !StateTable.Forgets.exists(boundedBy.contains(_))

  override def toString: String = s"$table: ${key.mkString("(", ", ", ")")} → $value, $boundedBy"
}

object StateTable {

  /** What bounds a table that no watermark does: nothing, unless the session has a TTL. */
  def unbounded: String = if (ttl == 0) Unbounded else forgotten

  /** What bounds a table that `bound` does too. */
  def boundedBy(bound: String): String = if (ttl == 0) bound else s"$bound, $forgotten"

  /** Whether a table, as it is shown, has a TTL. */
  def hasTtl(shown: String): Boolean = shown.contains(Forgotten)

  val Unbounded = "unbounded"

  private val Forgotten = "forgotten"

  private val Forgets = Seq("watermark", Forgotten)

  private def ttl: Long = SQLConf.get.getConf(ChangelogConf.STATE_TTL)

  private def forgotten: String =
    s"$Forgotten ${Utils.msDurationToString(ttl)} after its last change"
}
