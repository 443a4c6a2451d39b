// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.locks.ReentrantLock

import org.apache.hadoop.fs.Path

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQuery

import org.apache.spark.sql.changelog.checkpoint.Fence
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * ViewLeases: runs the statements that write a view one after another. Each statement sees the view as left by the
 * statement before. Without this order, Spark would stop the first statement's query when the second begins, and the
 * first statement would seem finished.
 *
 * A lock orders the statements of this process, a [[ViewLease]] the statements of different processes.
 */
object ViewLeases {
  private val locks = new ConcurrentHashMap[Path, ReentrantLock]()
  private val leases = new ConcurrentHashMap[Path, ViewLease]()

  /** Passes the view of this name to `write` once no other statement writes the view. */
  def apply[T](session: SparkSession, name: Seq[String])(write: MaterializedView => T): T = {
    val catalog = new ViewCatalog(session)
    val written = of(session, catalog.get(name)) {
      val view = catalog.get(name)
      val swap = ViewSwap.remainsOf(session, view)
      // The recovery of a swap takes the other view's lease, too, and may have to take that lease first.
      swap.other.filter(other =>
        precedes(other, view) && !lockOf(other).isHeldByCurrentThread) match {
        case Some(other) => Left(other)
        case None =>
          val storage = ViewStorage(session, view)
          val isChanged = storage.recover(view) | ViewSwap.recover(session, view, swap)
          Right(write(if (isChanged) catalog.get(name) else view))
      }
    }
    written.fold(other => of(session, other)(apply(session, name)(write)), identity)
  }

  /** Returns whether the lease of one view is taken before the other's. A single order avoids deadlocks. */
  private def precedes(one: MaterializedView, other: MaterializedView): Boolean =
    one.definition.home.toString <= other.definition.home.toString

  /** Runs `write` even while a query of another process keeps the view current. */
  def evenIfQueryRuns[T](session: SparkSession, name: Seq[String])(
      write: MaterializedView => T): T =
    try apply(session, name)(write)
    catch {
      case error: SparkThrowable if error.getCondition == ViewLease.RunningElsewhere =>
        write(new ViewCatalog(session).get(name))
    }

  /** Runs `write` once no other statement writes the view. */
  def of[T](session: SparkSession, view: MaterializedView)(write: => T): T = {
    val lock = lockOf(view)
    lock.lockInterruptibly()
    try {
      if (lock.getHoldCount > 1 && leaseOf(view).nonEmpty) write
      else leased(session, view)(write)
    } finally lock.unlock()
  }

  /** Passes two views to `write` once no other statement writes either view. */
  def both[T](session: SparkSession, one: Seq[String], other: Seq[String])(
      write: (MaterializedView, MaterializedView) => T): T = {
    val catalog = new ViewCatalog(session)
    // Otherwise, the recovery of an earlier swap might take a third view's lease, out of order.
    Seq(one, other)
      .filter(name => ViewSwap.remainsOf(session, catalog.get(name)).other.nonEmpty)
      .foreach(apply(session, _)(_ => ()))
    if (precedes(catalog.get(one), catalog.get(other))) {
      apply(session, one)(first => apply(session, other)(write(first, _)))
    } else apply(session, other)(second => apply(session, one)(write(_, second)))
  }

  private def leased[T](session: SparkSession, view: MaterializedView)(write: => T): T = {
    // The lease of a running query of this process, or a new lease.
    val lease = leaseOf(view).filter(_.use()).getOrElse(ViewLease.await(session, view))
    leases.put(view.definition.home, lease)
    try Fence.within(lease)(write)
    catch {
      case _: Throwable if lease.isLost =>
        throw analysis("CHANGELOG_VIEW_LEASE_LOST", "view" -> view.name)
    } finally {
      lease.release()
      // Otherwise, the statement's session might read rows from before for some time.
      new ViewCatalog(session).invalidate(view.name)
      // Clears the interrupt by which the lost lease stopped the statement.
      if (lease.isLost) Thread.interrupted()
    }
  }

  /** Hands the lease to a query until the query ends. */
  private[views] def handTo(view: MaterializedView, query: StreamingQuery): Unit =
    leaseOf(view).foreach(_.handTo(query))

  /** Ends the lease of a query that has ended. */
  private[views] def releaseIfUnused(view: MaterializedView): Unit =
    leaseOf(view).foreach(_.releaseIfUnused())

  /** Ends the lease before the statement that holds the lease removes the view. */
  private[views] def endForRemoval(view: MaterializedView): Unit =
    Option(leases.remove(view.definition.home)).foreach(_.endForRemoval())

  /** Moves the view, together with the lease of the moving statement. No other statement writes the view meanwhile. */
  private[views] def moving(session: SparkSession, view: MaterializedView)(
      move: => MaterializedView): Unit = {
    val lease = Option(leases.remove(view.definition.home))
    lease.foreach(_.endForRemoval())
    var place = view
    try place = move
    finally lease.foreach(_.endInNewHome(session, place))
  }

  /** Returns whether a statement waits for another. */
  private[views] def hasWaiters(view: MaterializedView): Boolean = lockOf(view).hasQueuedThreads

  private def leaseOf(view: MaterializedView): Option[ViewLease] =
    Option(leases.get(view.definition.home))

  private def lockOf(view: MaterializedView): ReentrantLock =
    locks.computeIfAbsent(view.definition.home, _ => new ReentrantLock)
}
