// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration

import org.apache.spark.internal.{LogKeys, Logging}
import org.apache.spark.sql.execution.streaming.state.{StateStoreConf, StateStoreId}
import org.apache.spark.util.ThreadUtils

import org.apache.spark.sql.changelog.compat.StateStores

/**
 * Writes a snapshot of a store every so many versions: by the next maintenance, or without it if there
 * has been none for long. No batch waits for one, unless they are written slower than batches come.
 *
 * A version is in its delta, so a snapshot that can't be written fails nothing; it is tried again.
 */
private[state] final class StateSnapshots(
    files: StateFiles,
    storeId: StateStoreId,
    storeConf: StateStoreConf,
    hadoopConf: Configuration)
    extends Logging {
  import StateSnapshots._

  // held while a file is written, and while it is settled which files are right
  private val writing = new Object

  // guarded by this
  private var written = 0L
  private var taken = 0L
  private var pending: Option[(Long, StateView)] = None
  private var isMaintained = true
  private var overtaken = Set.empty[Long]

  /**
   * The store goes on from a version: whatever came after it was an attempt that is abandoned, and
   * is written anew.
   *
   * @param isSame
   *   whether it is one this store has written, so that a snapshot it has taken until then is right
   */
  def continueFrom(version: Long, isSame: Boolean): Unit = writing.synchronized {
    val (before, after) = files.snapshots().partition(_ <= version)
    synchronized {
      pending = pending.filter(isSame && _._1 <= version)
      isMaintained ||= pending.isEmpty
      written = before.maxOption.getOrElse(0L)
      taken = pending.map(_._1).getOrElse(written)
      overtaken = after.toSet
    }
    report(before.maxOption.getOrElse(0L))
  }

  /** A version is about to be written. Its snapshot, if there is one, is an abandoned attempt's. */
  def beforeCommit(version: Long): Unit = if (overtaken.contains(version)) {
    files.deleteSnapshot(version)
    overtaken -= version
  }

  /** A version has been written. */
  def afterCommit(version: Long, force: Boolean, view: () => StateView): Unit = {
    val (isAtOnce, isLate) = synchronized {
      val usual = storeConf.minDeltasForSnapshot
      val isTime = version - taken > usual
      val isLate = isTime && version - written > LongestChain * usual
      val isAtOnce = force || isTime && version - written > 2 * LongestChain * usual
      if (isAtOnce || isLate || isTime && isMaintained) {
        if (!isAtOnce) {
          pending = Some((version, view()))
          isMaintained = false
        }
        taken = version
      }
      (isAtOnce, isLate)
    }
    if (isAtOnce) write(version, view())
    else if (isLate) background.execute(() => maintain())
  }

  /** Nothing is written any more: another executor may go on with the store. */
  def close(): Unit = synchronized {
    pending = None
  }

  /** Writes what is to be written, in the background. */
  def maintain(): Unit = writing.synchronized {
    val (version, view) = synchronized {
      isMaintained = true
      pending.getOrElse((0L, null))
    }
    if (view != null) write(version, view)
  }

  private def write(version: Long, view: StateView): Unit = writing.synchronized {
    try {
      files.writeSnapshot(version, view)
      synchronized {
        written = math.max(written, version)
        pending = pending.filter(_._1 > version)
      }
      report(version)
    } catch {
      case NonFatal(e) =>
        logWarning(
          log"Could not write the snapshot of version ${MDC(LogKeys.VERSION_NUM, version)} of " +
            log"${MDC(LogKeys.STATE_STORE_ID, storeId)}; it is tried again",
          e)
    }
  }

  /** Without it Spark's coordinator would take the store to be behind, and want one with every batch. */
  private def report(version: Long): Unit =
    if (storeConf.reportSnapshotUploadLag) {
      try StateStores.reportSnapshot(storeId, version, hadoopConf)
      catch {
        case NonFatal(e) =>
          logWarning(
            log"Could not report the snapshot of version ${MDC(LogKeys.VERSION_NUM, version)} of " +
              log"${MDC(LogKeys.STATE_STORE_ID, storeId)}",
            e)
      }
    }
}

private object StateSnapshots {

  /**
   * After how many times the usual number of deltas a snapshot no longer waits for maintenance. The batch
   * waits for it after twice as many.
   */
  private val LongestChain = 10

  private lazy val background = ThreadUtils.newDaemonSingleThreadExecutor("changelog-snapshots")
}

/**
 * Entries of a table as they were at some time.
 *
 * @param addresses
 *   of entries that are there, and zeros, then of entries that are gone
 * @param numPut
 *   how many are there
 * @param firstRemoved
 *   where those that are gone begin
 */
private[state] final class StateView(
    val records: RowPages.View,
    addresses: LongBlock,
    numPut: Int,
    firstRemoved: Int) {

  /** Gives the address of each entry that is there. */
  def foreachPut(use: Long => Unit): Unit = foreach(0, numPut, use)

  /** Gives the address that each entry had that is gone. */
  def foreachRemoved(use: Long => Unit): Unit = foreach(firstRemoved, addresses.length, use)

  private def foreach(from: Int, until: Int, use: Long => Unit): Unit = {
    var index = from
    while (index < until) {
      if (addresses(index) != 0) use(addresses(index))
      index += 1
    }
  }
}
