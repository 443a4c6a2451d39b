// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.streaming.StreamingQueryProgress

import org.apache.spark.sql.changelog.evolution.{EstimatedFate, Evolution, OperatorFate}

/**
 * A program whose query becomes another one on the way.
 *
 * @param program
 *   the program, with the tables and views of both queries
 * @param changed
 *   the other query
 * @param at
 *   after how many steps it goes on
 * @param keepsTarget
 *   whether the other one goes on with the rows there are; both have the same columns then
 * @param fails
 *   whether its first batch fails once
 */
final case class ChangedProgram(
    program: Program,
    changed: String,
    at: Int,
    keepsTarget: Boolean,
    fails: Boolean) {

  /**
   * Compares with batch Spark after every batch, and what was said of the first batch with what that has read.
   * Returns what becomes of the operators.
   */
  def check(oracle: Oracle, variant: Variant): Seq[OperatorFate] =
    oracle.sessions.withConf(variant.conf) {
      val run = new ProgramRun(oracle.sessions, program, variant, compares = true)
      try {
        val (before, after) = program.steps.splitAt(at)
        before.foreach(run.step)
        var said = Seq.empty[EstimatedFate]
        run.goOnWith(changed, keepsTarget, fails) { (changes, from, into, held) =>
          val evolution = new Evolution(
            changes.sparkSession.asInstanceOf[SparkSession],
            new Path(from.toUri),
            changes.asInstanceOf[DataFrame].queryExecution.analyzed)
          said = evolution.estimates()
          evolution.prepare(new Path(into.toUri), held.map(_.asInstanceOf[DataFrame]))
        }
        run.step(Step(Map.empty[String, Seq[Change]]))
        ChangedProgram.checkRead(said, run.progress)
        after.foreach(run.step)
        said.map(_.fate)
      } finally run.stop()
    }

  override def toString: String =
    s"${if (keepsTarget) "with its rows " else ""}${if (fails) "failing at first " else ""}" +
      s"after $at steps\nchanged $changed\n$program"
}

object ChangedProgram {

  /** Fails if the rows that were said to be read of state are not those that the first batch has read. */
  def checkRead(said: Seq[EstimatedFate], progress: Seq[StreamingQueryProgress]): Unit = {
    val batches = progress.filter(_.stateOperators.nonEmpty)
    batches.minByOption(_.batchId).foreach { first =>
      val kept = first.stateOperators.map(_.numRowsTotal).toSeq
      val ofState = said.filter(_.fate.from == "all its rows are read from its state")
      val missing = ofState.map(_.rows.getOrElse(-1L)).diff(kept)
      assert(missing.isEmpty, s"$said are not in ${kept.mkString(", ")}")
    }
  }
}
