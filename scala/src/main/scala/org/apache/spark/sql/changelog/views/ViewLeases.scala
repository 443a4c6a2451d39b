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
import org.apache.spark.sql.changelog.errors.ViewErrors

/**
 * Runs statements that write a view one after the other: each meets the view as the one before has left it. Spark
 * would end the query of the first when the second begins, and the first would be taken for done.
 *
 * Statements of this process wait for each other by a lock, and those of other processes by a [[ViewLease]].
 */
object ViewLeases {
  private val locks = new ConcurrentHashMap[Path, ReentrantLock]()
  private val leases = new ConcurrentHashMap[Path, ViewLease]()

  /** Hands the view of that name to `write` as soon as no other statement writes it. */
  def apply[T](session: SparkSession, name: Seq[String])(write: KeptView => T): T = {
    val catalog = new ViewCatalog(session)
    of(session, catalog.get(name)) {
      val view = catalog.get(name)
      ViewStorage(session, view.definition.provider).settle(view)
      ViewSwap.settle(session, view)
      write(catalog.get(name))
    }
  }

  /** The same, but that a query of another process which keeps the view is no obstacle. */
  def besideQuery[T](session: SparkSession, name: Seq[String])(write: KeptView => T): T =
    try apply(session, name)(write)
    catch {
      case error: SparkThrowable if ViewErrors.saysIsRunning(error.getCondition) =>
        write(new ViewCatalog(session).get(name))
    }

  /** Runs `write` as soon as no other statement writes the view. */
  def of[T](session: SparkSession, view: KeptView)(write: => T): T = {
    val lock = lockOf(view)
    lock.lockInterruptibly()
    try {
      if (lock.getHoldCount > 1 && leaseOf(view).nonEmpty) write
      else leased(session, view)(write)
    } finally lock.unlock()
  }

  /** The same of two views. */
  def both[T](session: SparkSession, one: Seq[String], other: Seq[String])(
      write: (KeptView, KeptView) => T): T = {
    def homeOf(name: Seq[String]) = new ViewCatalog(session).get(name).definition.home.toString
    // always in the same order, so that nobody waits for who waits for him
    if (homeOf(one) <= homeOf(other)) {
      apply(session, one)(first => apply(session, other)(write(first, _)))
    } else apply(session, other)(second => apply(session, one)(write(_, second)))
  }

  private def leased[T](session: SparkSession, view: KeptView)(write: => T): T = {
    // of a query of this process that keeps the view, or a new one
    val lease = leaseOf(view).filter(_.use()).getOrElse(ViewLease.await(session, view))
    leases.put(view.definition.home, lease)
    try Fence.within(lease)(write)
    catch {
      case _: Throwable if lease.isLost => throw ViewErrors.leaseLost(view.name)
    } finally {
      lease.release()
      // by which it was interrupted
      if (lease.isLost) Thread.interrupted()
    }
  }

  /** The lease is a query's from now on, for as long as that runs. */
  private[views] def keep(view: KeptView, query: StreamingQuery): Unit =
    leaseOf(view).foreach(_.keep(query))

  /** A query that has kept the view has ended. */
  private[views] def letGo(view: KeptView): Unit = leaseOf(view).foreach(_.letGo())

  /** The statement that holds the lease removes the view. */
  private[views] def leave(view: KeptView): Unit =
    Option(leases.remove(view.definition.home)).foreach(_.leave())

  /** The statement that holds the lease moves the view. Nobody else writes the view meanwhile. */
  private[views] def moving(session: SparkSession, view: KeptView)(move: => KeptView): Unit = {
    val lease = Option(leases.remove(view.definition.home))
    lease.foreach(_.leave())
    var place = view
    try place = move
    finally lease.foreach(_.endAt(session, place))
  }

  /** Whether a statement waits for another. */
  private[views] def isAwaited(view: KeptView): Boolean = lockOf(view).hasQueuedThreads

  private def leaseOf(view: KeptView): Option[ViewLease] =
    Option(leases.get(view.definition.home))

  private def lockOf(view: KeptView): ReentrantLock =
    locks.computeIfAbsent(view.definition.home, _ => new ReentrantLock)
}
