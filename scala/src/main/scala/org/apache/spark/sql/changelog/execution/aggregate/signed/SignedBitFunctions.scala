// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import org.apache.spark.sql.changelog.errors.ChangelogErrors

/** Gives the functions of [[SignedBitFunctions$]] the static form generated code calls. */
private[aggregate] class SignedBitFunctions

/**
 * Two counts in one `BIGINT`: the lower modulo 2^32, the upper 2^32 times the other. Sums of such
 * pairs are pairs of sums, negative ones on the way too.
 */
object SignedBitFunctions {
  private val MostRows = (1L << 32) - 1

  /** What a value adds to the counts of two of its bits. */
  def countOfTwo(value: Long, low: Int, high: Int, sign: Long): Long =
    (((value >>> low) & 1L) | (((value >>> high) & 1L) << 32)) * sign

  /** Those of two bits that are set in at least one value. */
  def bitsOfAny(counts: Long, low: Int, high: Int, rows: Long): Long = {
    checkCountable("bit_or", rows)
    bit(lowCount(counts) != 0, low) | bit(highCount(counts) != 0, high)
  }

  /** Those of two bits that are set in all values. */
  def bitsOfAll(counts: Long, low: Int, high: Int, rows: Long): Long = {
    checkCountable("bit_and", rows)
    bit(lowCount(counts) == rows, low) | bit(highCount(counts) == rows, high)
  }

  private def lowCount(counts: Long): Long = counts & MostRows

  private def highCount(counts: Long): Long = counts >>> 32

  private def bit(isSet: Boolean, number: Int): Long = if (isSet) 1L << number else 0L

  private def checkCountable(function: String, rows: Long): Unit =
    if (rows > MostRows) throw ChangelogErrors.groupTooLarge(function, rows, MostRows)
}
