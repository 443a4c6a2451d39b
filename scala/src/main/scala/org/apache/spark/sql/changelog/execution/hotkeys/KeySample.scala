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
 *
 * @param tell
 *   is given what was seen when the task is done, unless no row was looked at
 */
private[hotkeys] final class KeySample(
    partition: Int,
    describe: UnsafeRow => String,
    tell: SampledKeys => Unit) {
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

  /** Tells what was seen. */
  def finish(): Unit = if (keys != null) {
    val counts = keys
      .getFrequentItems(Unremarkable, ErrorType.NO_FALSE_NEGATIVES)
      .take(MostTold)
      .map(found => describe(found.getItem) -> found.getEstimate)
    tell(SampledKeys(keys.getStreamLength, counts.toSeq))
  }

  private def gap(): Int = random.nextInt(1, 2 * KeySample.OneOf)
}

private[hotkeys] object KeySample {

  /** One of so many rows is looked at. */
  val OneOf = 64

  /** So large a sketch errs by less than two percent of the rows. */
  private val MostKeys = 256

  /** A key that no more rows of a task have is none that matters. */
  private val Unremarkable = 8L

  /** No more keys can each have a third of the rows. */
  private val MostTold = 3
}
