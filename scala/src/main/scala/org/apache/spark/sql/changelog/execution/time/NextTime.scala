// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.util.AccumulatorV2

/** The first time, in ms, at which one of the tasks of a batch has something to do again. */
private[time] final class NextTime extends AccumulatorV2[Long, Long] {
  private var earliest = Long.MaxValue

  override def isZero: Boolean = earliest == Long.MaxValue

  override def copy(): NextTime = {
    val copied = new NextTime
    copied.add(earliest)
    copied
  }

  override def reset(): Unit = earliest = Long.MaxValue

  override def add(time: Long): Unit = earliest = math.min(earliest, time)

  override def merge(other: AccumulatorV2[Long, Long]): Unit = add(other.value)

  /** Long.MaxValue if there is none. */
  override def value: Long = earliest
}
