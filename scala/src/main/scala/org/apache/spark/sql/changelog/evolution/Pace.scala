// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import java.util.Locale

/**
 * How long rows are expected to take.
 *
 * @param basis
 *   what this is known from, for people
 */
private[evolution] final case class Pace(secondsPerRow: Double, basis: String) {

  /** So many seconds, and how they are told. */
  def estimate(rows: Long): (Double, String) = {
    val seconds = rows * secondsPerRow
    (seconds, s"${Pace.shown(seconds)}, $basis")
  }
}

private[evolution] object Pace {

  /**
   * As fast as the fastest of some that were done before. Few rows tell only what each batch takes, however little
   * there is to do; others may have waited for something.
   */
  def ofEarlier(taken: Seq[TakenTime]): Option[Pace] =
    taken.filter(_.rows >= Enough).minByOption(_.secondsPerRow).map { fastest =>
      Pace(fastest.secondsPerRow, s"as fast as ${fastest.what}")
    }

  /** As fast as what was measured elsewhere. */
  def measured(cores: Int): Pace = Pace(
    1.0 / (RowsPerSecond * cores),
    String.format(Locale.ROOT, "at %,d rows a second and core", Long.box(RowsPerSecond)))

  /** So many rows tell of rows. */
  private val Enough = 10000L

  /**
   * How many rows a core takes into new state in a second: what joins did in `benchmarks/results/growth-first.txt`, the
   * slowest operator there, rounded down.
   */
  private val RowsPerSecond = 100000L

  private def shown(seconds: Double): String =
    if (seconds < 1) "less than 1 s"
    else if (seconds < 100) s"about ${math.round(seconds)} s"
    else if (seconds < 100 * 60) s"about ${math.round(seconds / 60)} min"
    else s"about ${math.round(seconds / 3600)} h"
}
