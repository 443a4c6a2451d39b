// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.{Files, Path}

import scala.util.Try

import org.apache.commons.io.FileUtils
import org.apache.hadoop.fs.{Path => HadoopPath}

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.streaming.StreamingQueryProgress
import org.apache.spark.sql.{DataFrame => AnyDataFrame}

import org.apache.spark.sql.changelog.evolution.{Evolution, Rescaling, StatePlan}

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
 *   whether the other one goes on with the rows there are, in its own columns
 * @param fails
 *   whether its first batch fails once
 * @param changedFeeds
 *   how the other query reads the tables, if it does so otherwise
 * @param foreseen
 *   what is to become of it
 * @param preparationEnds
 *   if its checkpoint is made by a process that ends on the way, when: after this share of the changes to files
 * @param firstBatchEnds
 *   if the process ends in which its first batch is run, after how many changes to files
 * @param mode
 *   in which both queries give their changes
 * @param key
 *   in mode `upsert`, what identifies a row of either
 * @param partitionsBefore
 *   in how many partitions the first query goes on before it becomes the other one, if those are others
 * @param partitionsAfter
 *   in how many the other one goes on after its first batch
 */
final case class ChangedProgram(
    program: Program,
    changed: String,
    at: Int,
    keepsTarget: Boolean = false,
    fails: Boolean = false,
    changedFeeds: Option[Seq[Feed]] = None,
    foreseen: ChangedProgram.Foreseen = ChangedProgram.GoesOn,
    preparationEnds: Option[Double] = None,
    firstBatchEnds: Option[Int] = None,
    mode: String = "retract",
    key: Seq[String] = Nil,
    partitionsBefore: Option[Int] = None,
    partitionsAfter: Option[Int] = None) {
  import ChangedProgram._

  private val feeds = changedFeeds.getOrElse(program.feeds)

  /** Compares with batch Spark after every batch. */
  def check(oracle: Oracle, variant: Variant): Outcome = oracle.sessions.withConf(variant.conf) {
    val run = new ProgramRun(oracle.sessions, program, inMode(variant), compares = true)
    try {
      val after = begin(run)
      partitionsBefore.foreach(rescale(run, _))
      val outcome = change(run, after)
      partitionsAfter.foreach(rescale(run, _))
      // where it can't go on, or has not, the query before does
      after.drop(outcome.steps).foreach(run.step)
      outcome
    } finally run.stop()
  }

  /** What would become of the operators. */
  def fates(oracle: Oracle, variant: Variant): Seq[StatePlan] =
    oracle.sessions.withConf(variant.conf) {
      val run = new ProgramRun(oracle.sessions, program, inMode(variant), compares = false)
      try {
        begin(run)
        var fates = Seq.empty[StatePlan]
        run.continueWith(changed, feeds, keepsTarget = false, fails = false, ends = None) {
          (changes, from, _, _) => fates = evolution(changes, from).operators
        }
        fates
      } finally run.stop()
    }

  private def inMode(variant: Variant): Variant = variant.copy(mode = mode, key = key)

  /** Spreads the state over another number of partitions, if there is any. */
  private def rescale(run: ProgramRun, partitions: Int): Unit = if (run.hasBegun) {
    run.continueFrom { (session, from, into) =>
      new Rescaling(session, new HadoopPath(from.toUri), partitions)
        .write(new HadoopPath(into.toUri))
      ()
    }
  }

  /** Makes the steps before the other query; there is one batch at least. Returns those that are left. */
  private def begin(run: ProgramRun): Seq[Step] = {
    val (before, after) = program.steps.splitAt(at)
    before.foreach(run.step)
    val idle = after.takeWhile { step =>
      val waits = !run.hasBegun
      if (waits) run.step(step)
      waits
    }
    after.drop(idle.size)
  }

  private def evolution(changes: AnyDataFrame, from: Path): Evolution = new Evolution(
    changes.sparkSession.asInstanceOf[SparkSession],
    new HadoopPath(from.toUri),
    changes.asInstanceOf[DataFrame].queryExecution.analyzed)

  /** Lets the other query go on, if it can. */
  private def change(run: ProgramRun, after: Seq[Step]): Outcome = {
    var said = Seq.empty[StatePlan]
    var steps = 0
    var endings = Seq.empty[String]
    val firstRun = firstBatchEnds.map(new EndedRun(_))
    def goOn(prepare: (Evolution, Path, Option[AnyDataFrame]) => Unit): Unit =
      run.continueWith(changed, feeds, keepsTarget, fails, firstRun) {
        (changes, from, into, held) =>
          if (preparationEnds.isDefined) {
            val conf = changes.sparkSession.conf
            EndingFileSystem.conf.foreach { case (key, value) => conf.set(key, value) }
          }
          val evolved = evolution(changes, from)
          said = evolved.operators
          prepare(evolved, into, held)
      }
    def make(evolution: Evolution, into: Path, held: Option[AnyDataFrame]): Unit =
      evolution.prepare(new HadoopPath(into.toUri), held.map(_.asInstanceOf[DataFrame]))

    val refusal =
      try {
        preparationEnds match {
          case None => goOn(make)
          case Some(share) =>
            try
              goOn { (evolution, into, held) =>
                val changes = changesTo(into)(make(evolution, _, held))
                EndingFileSystem.ending((share * changes).toInt)(make(evolution, into, held))
                if (!Files.exists(into)) throw new Ended
                endings :+= "with a whole checkpoint"
              }
            catch {
              case _: Ended =>
                endings :+= "without a checkpoint"
                // the query before goes on, and becomes the other one later
                after.headOption.foreach(run.step)
                steps = math.min(1, after.size)
                goOn(make)
            }
        }
        None
      } catch {
        case error: SparkThrowable if error.getCondition == Condition =>
          Some(error.getMessageParameters.get("reason"))
      }
    (if (run.hasBegun) foreseen else CannotGoOn("no batch of the query is done"))
      .check(refusal, said)
    if (refusal.isEmpty) {
      run.step(Step(Map.empty[String, Seq[Change]]))
      if (foreseen == KeepsAll) checkNothingRead(run.progress)
    }
    if (firstRun.exists(_.hasEnded)) endings :+= "in the first batch"
    Outcome(said, refusal, endings, steps)
  }

  /** How often files are changed to make a checkpoint. */
  private def changesTo(into: Path)(make: Path => Unit): Int = {
    val other = into.resolveSibling(s"${into.getFileName}-counted")
    val (_, changes) = EndingFileSystem.within(Int.MaxValue)(make(other))
    FileUtils.deleteDirectory(other.toFile)
    changes
  }

  override def toString: String = {
    val how = Seq(
      if (keepsTarget) Some("with its rows") else None,
      if (fails) Some("failing at first") else None,
      if (mode == "retract") None else Some((mode +: key).mkString(" ")),
      partitionsBefore.map(number => s"in $number partitions before"),
      partitionsAfter.map(number => s"in $number partitions afterwards"),
      preparationEnds.map(share => s"ended after $share of its preparation"),
      firstBatchEnds.map(changes => s"ended after $changes changes of its first batch"),
      changedFeeds.map(feeds => s"reading ${feeds.mkString(", ")}")).flatten
    s"${how.mkString(", ")} after $at steps, foreseen: $foreseen\nchanged $changed\n$program"
  }
}

object ChangedProgram {
  private val Condition = "CHANGELOG_EVOLUTION_NOT_POSSIBLE"

  /** What is to become of a query that is changed. */
  sealed trait Foreseen {
    def check(refusal: Option[String], fates: Seq[StatePlan]): Unit
  }

  /** It goes on, with whatever it can keep. */
  case object GoesOn extends Foreseen {
    override def check(refusal: Option[String], fates: Seq[StatePlan]): Unit =
      assert(refusal.isEmpty, s"it is refused: ${refusal.mkString}")
  }

  /** It goes on with all its state. */
  case object KeepsAll extends Foreseen {
    override def check(refusal: Option[String], fates: Seq[StatePlan]): Unit = {
      GoesOn.check(refusal, fates)
      assert(fates.forall(_.isKept), fates.mkString("\n"))
    }
  }

  /** It can't, for a reason with these words. */
  final case class CannotGoOn(reason: String) extends Foreseen {
    override def check(refusal: Option[String], fates: Seq[StatePlan]): Unit =
      assert(refusal.exists(_.contains(reason)), s"$refusal has not $reason; ${fates.mkString}")
  }

  /**
   * It can't, for a reason with these words, exactly if another one rebuilds an operator of that name from its
   * sources, which differs from it in what is no reason there.
   */
  final case class AsAnother(reason: String, another: Seq[StatePlan], operator: String)
      extends Foreseen {
    override def check(refusal: Option[String], fates: Seq[StatePlan]): Unit = {
      val rebuilds =
        another.exists(fate => fate.shown.contains(operator) && fate.state == "rebuilt")
      if (rebuilds) CannotGoOn(reason).check(refusal, fates)
      else GoesOn.check(refusal, fates)
    }
  }

  /**
   * @param fates
   *   what becomes of the operators
   * @param refusal
   *   why it can't go on, if it can't
   * @param endings
   *   where a process has ended
   * @param steps
   *   how many steps the query before has made meanwhile
   */
  final case class Outcome(
      fates: Seq[StatePlan],
      refusal: Option[String],
      endings: Seq[String],
      steps: Int)

  /** The process has ended before there was a checkpoint. */
  private class Ended extends RuntimeException

  /** A run that ends when it has changed files so many times. */
  private class EndedRun(changes: Int) extends ProgramRun.Ending {
    override val conf: Map[String, String] = EndingFileSystem.conf

    var hasEnded = false

    override def within(run: => Unit): Unit =
      hasEnded = Try(EndingFileSystem.within(changes)(run)).isFailure
  }

  /** Fails if the first batch has read a source. */
  private def checkNothingRead(progress: Seq[StreamingQueryProgress]): Unit =
    progress.minByOption(_.batchId).foreach { first =>
      assert(first.numInputRows == 0, s"it has read ${first.numInputRows} rows of sources")
    }
}
