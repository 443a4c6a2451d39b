// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

/**
 * What was compared with batch Spark while queries ran, and what has disturbed them.
 *
 * @param notCompared
 *   batches that have read a file by one source of a table and not by another
 * @param kills
 *   of drivers or executors, by the test
 * @param failedTasks
 *   as Spark has told of them
 */
final case class RunFigures(
    compared: Int = 0,
    notCompared: Int = 0,
    kills: Int = 0,
    failedTasks: Int = 0,
    lostExecutors: Int = 0) {

  def +(other: RunFigures): RunFigures = RunFigures(
    compared + other.compared,
    notCompared + other.notCompared,
    kills + other.kills,
    failedTasks + other.failedTasks,
    lostExecutors + other.lostExecutors)

  /** A run shows something if batches were compared, and not all went well. */
  def check(): Unit = {
    assert(compared > 0, s"nothing was compared: $this")
    assert(kills + failedTasks + lostExecutors > 0, s"nothing was disturbed: $this")
  }

  override def toString: String =
    s"$compared batches compared, $notCompared that read sources of one table to different ends not; " +
      s"$kills kills, $failedTasks failed tasks, $lostExecutors lost executors"
}
