// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.lang.management.ManagementFactory
import java.time.Instant
import java.util.UUID
import java.util.concurrent.{ScheduledFuture, TimeUnit}

import scala.annotation.tailrec
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.util.ThreadUtils

import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.errors.ViewErrors

/**
 * The turn of this process to write a view, as other processes see it.
 *
 * {{{
 *   <home>/turns/7     whose turn it is, and how often that process has said so
 * }}}
 * Turns are numbered, and only one process makes the file of a number. It writes the file anew now
 * and then. One that stays as it is for the time of a lease is of a process that was killed, and the
 * next number may be taken. So nobody compares clocks. A process that has lost its turn, as it was held
 * up for too long, stops writing as soon as it finds out.
 */
private[views] final class ViewLease private (
    turns: ViewLease.Turns,
    number: Long,
    leaseMillis: Long)
    extends Logging {
  import ViewLease._

  private var turn = turns.mine
  private var statement: Option[Thread] = Some(Thread.currentThread())
  private var query: Option[StreamingQuery] = None
  private var hasEnded = false
  @volatile private var lost = false

  private val beats: ScheduledFuture[_] = {
    val period = math.max(leaseMillis / BeatsOfLease, 1)
    heart.scheduleWithFixedDelay(() => beat(), period, period, TimeUnit.MILLISECONDS)
  }

  /** Whether another process has taken the next turn. */
  def isLost: Boolean = lost

  /** Lets a statement write, too, if it is still the turn of this process. */
  def use(): Boolean = synchronized {
    letGo()
    val goesOn = !hasEnded && !lost
    if (goesOn) statement = Some(Thread.currentThread())
    goesOn
  }

  /** From now on it is a query's turn, for as long as that runs. */
  def keep(by: StreamingQuery): Unit = synchronized {
    query = Some(by)
    turn = turn.copy(isKept = true)
    say()
  }

  /** The statement has ended. */
  def release(): Unit = synchronized {
    statement = None
    letGo()
  }

  /** The view is about to be removed. Nothing is said any more: that would make its folder anew. */
  def leave(): Unit = synchronized {
    hasEnded = true
    beats.cancel(false)
    ()
  }

  /** The view has another folder now, where this turn is over. */
  def endAt(session: SparkSession, moved: KeptView): Unit = synchronized {
    val there = Turns(session, moved, leaseMillis)
    try if (there.last.contains(number)) there.write(number, turn.copy(hasEnded = true))
    catch {
      case NonFatal(error) => logWarning(log"Could not tell that a view is written", error)
    }
  }

  /** Lets others have their turn, unless a statement or a query goes on. */
  def letGo(): Unit = synchronized {
    if (statement.isEmpty && !query.exists(_.isActive)) end()
  }

  /** Lets others have their turn, also if the statement goes on. */
  def end(): Unit = synchronized {
    if (!hasEnded) {
      hasEnded = true
      beats.cancel(false)
      turn = turn.copy(hasEnded = true)
      // a view that was dropped has no turns; who is not told waits until the lease is over
      try if (!lost && turns.last.contains(number)) turns.write(number, turn)
      catch {
        case NonFatal(error) => logWarning(log"Could not tell that a view is written", error)
      }
    }
  }

  private def beat(): Unit = synchronized {
    try {
      letGo()
      if (!hasEnded) say()
    } catch {
      // the next one may succeed, before the lease is over
      case NonFatal(error) => logWarning(log"Could not tell that a view is being written", error)
    }
  }

  private def say(): Unit = {
    val last = turns.last
    if (last.exists(_ > number) || last.flatMap(turns.read).exists(_.owner != turn.owner)) {
      logWarning(log"A view is written by another process now: this one was held up for too long")
      lost = true
      beats.cancel(false)
      statement.foreach(_.interrupt())
      // it may take long, and other views are waiting for their beat
      query.foreach { running =>
        val stopping = new Thread(() => running.stop(), s"stop ${running.name}")
        stopping.setDaemon(true)
        stopping.start()
      }
    } else if (last.nonEmpty) {
      turn = turn.copy(beats = turn.beats + 1)
      turns.write(number, turn)
    }
  }
}

private[views] object ViewLease extends Logging {

  /** The name of the folder, below the home of a view. */
  val Folder = "turns"

  private val BeatsOfLease = 6
  private val Moment = 50L
  private val Process = ManagementFactory.getRuntimeMXBean.getName
  private lazy val heart = ThreadUtils.newDaemonSingleThreadScheduledExecutor("view-leases")

  /**
   * What a file says.
   *
   * @param owner
   *   what tells this turn from others
   * @param process
   *   whose it is, for people
   * @param beats
   *   how often it was written
   * @param isKept
   *   whether it is a query's, which may run for ever
   * @param leaseMillis
   *   for how long it may stay as it is, as who writes it knows
   */
  private case class Turn(
      owner: String,
      process: String,
      since: String,
      beats: Long = 0,
      isKept: Boolean = false,
      hasEnded: Boolean = false,
      leaseMillis: Long = 0)

  /** Waits until it is the turn of this process. Refuses a view that a query of another one keeps. */
  def await(session: SparkSession, view: KeptView): ViewLease = {
    val leaseMillis = session.sessionState.conf.getConf(ChangelogConf.VIEW_LEASE)
    val turns = Turns(session, view, leaseMillis)
    new Waiting(session, view, turns, leaseMillis).await()
  }

  private class Waiting(session: SparkSession, view: KeptView, turns: Turns, leaseMillis: Long) {
    private val pause = math.max(math.min(leaseMillis / (2 * BeatsOfLease), 1000), 1)

    /**
     * @param seen
     *   what was read last, and when that was first read
     */
    @tailrec
    final def await(seen: Option[(Turn, Long)] = None): ViewLease = {
      val last = turns.last
      val found = last.flatMap(turns.read)
      def isOver = seen.exists { case (turn, at) =>
        val lease = math.max(leaseMillis, turn.leaseMillis)
        found.contains(turn) && System.nanoTime() - at > TimeUnit.MILLISECONDS.toNanos(lease)
      }
      if (found.forall(_.hasEnded) || isOver) {
        // it may have been dropped, or renamed, and who takes a turn then makes its folder anew
        new ViewCatalog(session).get(view.name.nameParts)
        val next = last.getOrElse(0L) + 1
        if (turns.take(next)) new ViewLease(turns, next, leaseMillis) else await()
      } else {
        val turn = found.get
        val saysMore = seen.exists { case (before, _) => before != turn }
        if (turn.isKept && saysMore) {
          throw ViewErrors.isRunningElsewhere(view.name, s"${turn.process} since ${turn.since}")
        }
        if (seen.isEmpty) logInfo(log"A view is written by another process, which is waited for")
        Thread.sleep(pause)
        await(if (seen.isEmpty || saysMore) Some(turn -> System.nanoTime()) else seen)
      }
    }
  }

  private object Turns {
    def apply(session: SparkSession, view: KeptView, leaseMillis: Long): Turns = {
      val folder = new Path(view.definition.home, Folder)
      new Turns(folder, session.sessionState.newHadoopConf(), leaseMillis)
    }
  }

  /** The files of one view. */
  private class Turns(folder: Path, hadoopConf: Configuration, leaseMillis: Long) {
    private implicit val formats: Formats = Serialization.formats(NoTypeHints)
    private val files: FileSystem = folder.getFileSystem(hadoopConf)

    val mine: Turn =
      Turn(UUID.randomUUID.toString, Process, Instant.now().toString, leaseMillis = leaseMillis)

    /** The number of the last turn that was taken. */
    def last: Option[Long] = numbers.maxOption

    /** None if it is over, and its file is gone. */
    def read(number: Long): Option[Turn] = {
      def read() = file(number).find().map(Serialization.read[Turn](_))
      // a file is not replaced in one step everywhere, nor together with its checksum
      def again() = {
        Thread.sleep(Moment)
        read()
      }
      try read().orElse(again())
      catch { case NonFatal(_) => again() }
    }

    def write(number: Long, turn: Turn): Unit = file(number).write(Serialization.write(turn))

    /** Takes the turn of that number, unless another process does. */
    def take(number: Long): Boolean = {
      val isMade = file(number).create(Serialization.write(mine))
      // where renaming is not atomic, two may have made it; and who was slow may find it deleted
      val isOurs = isMade && last.contains(number) && read(number).exists(_.owner == mine.owner)
      if (isOurs) numbers.filter(_ < number).foreach(delete)
      else if (isMade && !last.contains(number)) delete(number)
      isOurs
    }

    private def delete(number: Long): Unit = {
      files.delete(path(number), false)
      ()
    }

    private def numbers: Seq[Long] =
      if (!files.exists(folder)) Nil
      else files.listStatus(folder).toSeq.flatMap(_.getPath.getName.toLongOption)

    private def file(number: Long) = new TextFile(path(number), hadoopConf)

    private def path(number: Long) = new Path(folder, number.toString)
  }
}
