// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.lang.management.ManagementFactory
import java.time.Instant
import java.util.UUID
import java.util.concurrent.TimeUnit

import scala.annotation.tailrec
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.util.ThreadUtils

import org.apache.spark.sql.changelog.checkpoint.{Fence, TextFile}
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * ViewLease: the lease of this process to write a view, as seen by other processes.
 *
 * {{{
 *   <home>/lease/7     the holder of term 7, and the number of renewals
 * }}}
 * Terms are numbered, and only one process creates the file of a number. The holder renews the lease by writing the
 * file again. A lease whose file stays unchanged for the lease time has expired, and another process may take the next
 * term. The processes thus need no common clock.
 *
 * The lease only avoids wasted work. Safety comes from the term, a fencing token checked before each effect. A holder
 * that has lost the lease writes nothing more.
 */
private[views] final class ViewLease private (
    view: TableIdentifier,
    terms: ViewLease.Terms,
    override val term: Long,
    leaseMillis: Long)
    extends Fence
    with Logging {
  import ViewLease._

  private var holder = terms.mine
  private var statement: Option[Thread] = Some(Thread.currentThread())
  private var query: Option[StreamingQuery] = None
  @volatile private var ended = false
  @volatile private var isReleased = false
  @volatile private var lost = false

  /** A thread for each lease, because a slow or hanging file system must not delay the remaining leases. */
  private val heart = {
    val period = math.max(leaseMillis / RenewalsOfLease, 1)
    val heart = ThreadUtils.newDaemonSingleThreadScheduledExecutor("view-lease")
    heart.scheduleWithFixedDelay(() => renew(), period, period, TimeUnit.MILLISECONDS)
    heart
  }

  override def hasEnded: Boolean = ended

  /** Whether another process has taken a later term. */
  def isLost: Boolean = lost

  override def check(): Unit =
    if (lost || !isReleased && !isCurrent) {
      markLost()
      throw analysis("CHANGELOG_VIEW_LEASE_LOST", "view" -> view)
    }

  /** Whether this term is the last. */
  private def isCurrent: Boolean =
    terms.last.contains(term) && terms.read(term).exists(_.owner == holder.owner)

  /** Lets a further statement write, and returns whether the lease still holds. */
  def use(): Boolean = synchronized {
    releaseIfUnused()
    val isHeld = !hasEnded && !lost
    if (isHeld) statement = Some(Thread.currentThread())
    isHeld
  }

  /** Hands the lease to a query until the query ends. */
  def handTo(by: StreamingQuery): Unit = synchronized {
    query = Some(by)
    holder = holder.copy(isKept = true)
    write()
  }

  /** Ends the use of the lease by the statement. */
  def release(): Unit = synchronized {
    statement = None
    releaseIfUnused()
  }

  /** Ends the lease before the view is removed. Another renewal would create the view's folder again. */
  def endForRemoval(): Unit = synchronized {
    isReleased = true
    ended = true
    heart.shutdown()
    ()
  }

  /** Ends the lease in the view's new folder. */
  def endInNewHome(session: SparkSession, moved: MaterializedView): Unit = synchronized {
    val there = termsOf(session, moved, leaseMillis)
    loggingFailure(if (there.last.contains(term)) there.write(term, holder.copy(hasEnded = true)))
  }

  /** Ends the lease, unless a statement or a query still uses the lease. */
  def releaseIfUnused(): Unit = synchronized {
    if (statement.isEmpty && !query.exists(_.isActive)) {
      if (!ended) {
        ended = true
        heart.shutdown()
        holder = holder.copy(hasEnded = true)
        // A dropped view has no lease files. If the write fails, other processes wait until the lease expires.
        loggingFailure(if (!lost && terms.last.contains(term)) terms.write(term, holder))
      }
    }
  }

  /** Logs a failed write. The next renewal may succeed before the lease expires. */
  private def loggingFailure(write: => Unit): Unit =
    try write
    catch { case NonFatal(error) => logWarning(log"Could not write the lease of a view", error) }

  private def renew(): Unit = synchronized {
    loggingFailure {
      releaseIfUnused()
      if (!hasEnded) write()
    }
  }

  private def write(): Unit = {
    val last = terms.last
    if (last.exists(_ > term) || last.flatMap(terms.read).exists(_.owner != holder.owner))
      markLost()
    else if (last.nonEmpty) {
      holder = holder.copy(renewals = holder.renewals + 1)
      terms.write(term, holder)
    }
  }

  private def markLost(): Unit = synchronized {
    if (!lost) {
      logWarning(log"A view is written by another process now: this one was held up for too long")
      lost = true
      heart.shutdown()
      statement.filter(_ != Thread.currentThread()).foreach(_.interrupt())
      // Stopping may take long, and a statement may wait for this lease's monitor meanwhile.
      query.foreach { running =>
        val stopping = new Thread(() => running.stop(), s"stop ${running.name}")
        stopping.setDaemon(true)
        stopping.start()
      }
    }
  }
}

private[views] object ViewLease extends Logging {

  /** The name of the folder, below the home of a view. */
  val Folder = "lease"

  /** The condition of the error that a running query refreshes the view, so that no refresh is needed. */
  val RunningElsewhere = "CHANGELOG_VIEW_IS_RUNNING_ELSEWHERE"

  private val RenewalsOfLease = 6
  private val PollMillis = 50L
  private val Process = ManagementFactory.getRuntimeMXBean.getName

  /**
   * The content of a term's file.
   *
   * @param owner
   *   identifies the holder
   * @param process
   *   the process, for people
   * @param isKept
   *   whether a query holds the lease, possibly forever
   * @param leaseMillis
   *   the holder's lease time, after which the lease expires unless renewed
   */
  private case class Holder(
      owner: String,
      process: String,
      since: String,
      renewals: Long = 0,
      isKept: Boolean = false,
      hasEnded: Boolean = false,
      leaseMillis: Long = 0)

  /** Waits for the lease. Rejects a view that a query of another process keeps current. */
  def await(session: SparkSession, view: MaterializedView): ViewLease = {
    val leaseMillis = session.sessionState.conf.getConf(ChangelogConf.VIEW_LEASE)
    val pause = math.max(math.min(leaseMillis / (2 * RenewalsOfLease), 1000), 1)
    val terms = termsOf(session, view, leaseMillis)
    // `seen` is the last holder read, and the time of the first read of this holder.
    @tailrec
    def await(seen: Option[(Holder, Long)] = None): ViewLease = {
      val last = terms.last
      val found = last.flatMap(terms.read)
      def isExpired = seen.exists { case (holder, at) =>
        val lease = math.max(leaseMillis, holder.leaseMillis)
        found.contains(holder) && System.nanoTime() - at > TimeUnit.MILLISECONDS.toNanos(lease)
      }
      if (found.forall(_.hasEnded) || isExpired) {
        // The view may have been dropped or renamed. Taking a term would then create the view's folder again.
        new ViewCatalog(session).get(view.name.nameParts)
        val next = last.getOrElse(0L) + 1
        if (!terms.take(next)) await()
        else {
          if (last.nonEmpty && !found.exists(_.hasEnded)) {
            logWarning(log"The lease of a view has expired; its last holder is fenced off")
            ViewStorage(session, view).fence(view, next)
          }
          new ViewLease(view.name, terms, next, leaseMillis)
        }
      } else {
        val holder = found.get
        val isRenewed = seen.exists { case (before, _) => before != holder }
        if (holder.isKept && isRenewed) {
          throw analysis(
            "CHANGELOG_VIEW_IS_RUNNING_ELSEWHERE",
            "view" -> view.name,
            "holder" -> s"${holder.process} since ${holder.since}")
        }
        if (seen.isEmpty) logInfo(log"A view is written by another process, which is waited for")
        Thread.sleep(pause)
        await(if (seen.isEmpty || isRenewed) Some(holder -> System.nanoTime()) else seen)
      }
    }
    await()
  }

  /** Waits at most for the time of a lease. Returns whether `isDone` by then. */
  def waitsFor(session: SparkSession)(isDone: => Boolean): Boolean = {
    val lease = session.sessionState.conf.getConf(ChangelogConf.VIEW_LEASE)
    val end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(lease)
    while (!isDone && System.nanoTime() < end) Thread.sleep(PollMillis)
    isDone
  }

  private def termsOf(session: SparkSession, view: MaterializedView, leaseMillis: Long): Terms = {
    val folder = new Path(view.definition.home, Folder)
    new Terms(folder, session.sessionState.newHadoopConf(), leaseMillis)
  }

  /** The lease files of one view. */
  private class Terms(folder: Path, hadoopConf: Configuration, leaseMillis: Long) {
    private implicit val formats: Formats = Serialization.formats(NoTypeHints)
    private val files: FileSystem = folder.getFileSystem(hadoopConf)

    val mine: Holder =
      Holder(UUID.randomUUID.toString, Process, Instant.now().toString, leaseMillis = leaseMillis)

    /** Returns the last term taken. */
    def last: Option[Long] = numbers.maxOption

    /** Returns the holder of a term, or None if the term is over and the file is deleted. */
    def read(number: Long): Option[Holder] = {
      def read() = file(number).find().map(Serialization.read[Holder](_))
      // Some file systems replace neither a file, nor a file together with its checksum, atomically.
      def again() = {
        Thread.sleep(PollMillis)
        read()
      }
      try read().orElse(again())
      catch { case NonFatal(_) => again() }
    }

    def write(number: Long, holder: Holder): Unit =
      file(number).write(Serialization.write(holder))

    /** Takes the term of this number, unless another process takes the term first. */
    def take(number: Long): Boolean = {
      val isMade = file(number).create(Serialization.write(mine))
      // Without atomic renames, two processes may create the file. A slow process may find its file deleted.
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
