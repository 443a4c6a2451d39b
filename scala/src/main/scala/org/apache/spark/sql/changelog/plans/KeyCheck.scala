// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.internal.Logging
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.errors.ChangelogErrors

/**
 * Refuses a second row of a key, or warns of it.
 *
 * @param key
 *   the columns of the key, as text
 * @param fails
 *   whether it is refused
 */
case class KeyCheck(key: String, fails: Boolean) extends Logging {

  /**
   * Takes note that a key has several rows.
   *
   * @param values
   *   the key's values
   * @param row
   *   one of its rows
   * @param reader
   *   who reads the source: each is warned once in a process
   */
  def duplicate(rows: Long, values: String, row: String, reader: String): Unit =
    if (fails) throw ChangelogErrors.keyDuplicate(key, values, row, rows)
    else if (KeyCheck.warned.add(s"$reader $key")) {
      // a log is no place for what rows say
      logWarning(
        s"A source has several rows of one key $key, and each counts. $reader is not warned again.")
    }

  /** Takes note of a duplicate, in an expression of a batch query. */
  def isNoted(rows: Long, values: UTF8String, row: UTF8String): Boolean = {
    duplicate(rows, values.toString, row.toString, "A batch query")
    true
  }
}

object KeyCheck {
  private val warned = ConcurrentHashMap.newKeySet[String]()
}
