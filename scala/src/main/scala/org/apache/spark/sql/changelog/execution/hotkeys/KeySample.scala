// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.hotkeys

import java.util.SplittableRandom

import org.apache.datasketches.frequencies.{ErrorType, ItemsSketch}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/**
 * What a task has seen of keys.
 *
 * @param rows
 *   how many rows it has looked at
 * @param counts
 *   the keys that most of these have, as text, and how many do
 */
private[hotkeys] final case class SampledKeys(rows: Long, counts: Seq[(String, Long)])

/**
 * Looks at one of 64 rows of a task, and counts those of the keys that most of them have in a sketch,
 * which is small whatever the keys are. Which rows it looks at is chance, as rows may come in turns, and the same
 * for each attempt.
 */
private[execution] final class KeySample(partition: Int) {
  import KeySample._

  private val random = new SplittableRandom(partition)
  private var untilNext = gap()
  private var keys: ItemsSketch[UnsafeRow] = _

  /** Whether the row at hand is to be looked at: then its key must be added. */
  def takesNext(): Boolean = {
    untilNext -= 1
    untilNext == 0
  }

  /** Counts the row at hand. */
  def add(key: UnsafeRow): Unit = {
    untilNext = gap()
    if (keys == null) keys = new ItemsSketch[UnsafeRow](MostKeys)
    keys.update(key.copy())
  }

  /** How many rows were looked at. */
  def rows: Long = if (keys == null) 0 else keys.getStreamLength

  /** The keys that at least so many of these have, the most frequent first, and about how many do. */
  def keysOf(leastRows: Long): Seq[(UnsafeRow, Long)] =
    if (keys == null) Nil
    else
      keys
        .getFrequentItems(leastRows - 1, ErrorType.NO_FALSE_NEGATIVES)
        .toSeq
        .map(found => found.getItem -> found.getEstimate)

  private def gap(): Int = random.nextInt(1, 2 * KeySample.OneOf)
}

private[execution] object KeySample {

  /** One of so many rows is looked at. */
  val OneOf = 64

  /** So large a sketch errs by less than two percent of the rows. */
  private val MostKeys = 256
}
