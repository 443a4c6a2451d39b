// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state.{StateStore, UnsafeRowPair}

/**
 * Entries of values that several kinds share, by a bit each, on their way to other partitions. What stood in one may
 * belong to several then, and the other way round:
 *
 * {{{
 *   partition 0   a 7 -> 11          partition 0   a 7 -> 01
 *             1              =>                1   a 7 -> 10
 *             2   b 7 -> 01                    2
 *             3   b 7 -> 10                    3   b 7 -> 11
 * }}}
 */
object MovedDistinctValues {

  /** The entry as those of each of its kinds alone. */
  def byKind(entry: UnsafeRowPair): Seq[UnsafeRowPair] = {
    val kinds = entry.value.getLong(0)
    (0 until DistinctLayout.MostShared).map(1L << _).filter(bit => (kinds & bit) != 0).map {
      bit =>
        val value = entry.value.copy()
        value.setLong(0, bit)
        new UnsafeRowPair(entry.key, value)
    }
  }

  /** Takes over an entry of one kind. */
  def add(entry: UnsafeRowPair, store: StateStore): Unit = {
    val there = store.get(entry.key, StateStore.DEFAULT_COL_FAMILY_NAME)
    if (there != null) unite(entry.value, there)
    store.put(entry.key, entry.value, StateStore.DEFAULT_COL_FAMILY_NAME)
  }

  /** The kinds of both, and when the last of them was written, if that is known. */
  private def unite(value: UnsafeRow, there: UnsafeRow): Unit = {
    value.setLong(0, value.getLong(0) | there.getLong(0))
    (1 until value.numFields).foreach { time =>
      value.setLong(time, math.max(value.getLong(time), there.getLong(time)))
    }
  }
}
