// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

/**
 * Entries of a table as they were at some time.
 *
 * @param addresses
 *   of entries that are there, and zeros, then of entries that are gone
 * @param numPut
 *   how many are there
 * @param firstRemoved
 *   where those that are gone begin
 */
private[state] final class StateView(
    val records: RowPages.View,
    addresses: LongBlock,
    numPut: Int,
    firstRemoved: Int) {

  /** Gives the address of each entry that is there. */
  def foreachPut(use: Long => Unit): Unit = foreach(0, numPut, use)

  /** Gives the address that each entry had that is gone. */
  def foreachRemoved(use: Long => Unit): Unit = foreach(firstRemoved, addresses.length, use)

  private def foreach(from: Int, until: Int, use: Long => Unit): Unit = {
    var index = from
    while (index < until) {
      if (addresses(index) != 0) use(addresses(index))
      index += 1
    }
  }
}
