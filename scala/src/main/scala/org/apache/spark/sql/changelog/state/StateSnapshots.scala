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
 * Writes a snapshot of a store every few versions: in the next maintenance, or in the background if maintenance
 * is late. A batch waits for a snapshot only if snapshots are written more slowly than batches run.
 *
 * A version is complete in its deltas. A failed snapshot therefore fails no batch and is tried again.
 */
private[state] final class StateSnapshots(
    files: StateFiles,
    storeId: StateStoreId,
    storeConf: StateStoreConf,
    hadoopConf: Configuration)
    extends Logging {
  import StateSnapshots._

  // held while a file is written, and while valid files are determined
  private val writing = new Object

  // guarded by this
  private var written = 0L
  private var taken = 0L
  private var pending: Option[(Long, StateView)] = None
  private var isMaintained = true
  private var overtaken = Set.empty[Long]

  /**
   * Continues from a version. Later versions come from abandoned attempts and will be written again.
   *
   * @param isSame
   *   whether this store has written the version, so that a pending snapshot up to it is valid
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

  /** Prepares for writing a version: deletes the snapshot of an abandoned attempt. */
  def beforeCommit(version: Long): Unit = if (overtaken.contains(version)) {
    files.deleteSnapshot(version)
    overtaken -= version
  }

  /** Decides, after a version was written, whether and when to write its snapshot. */
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

  /** Stops writing. Another executor may continue with the store. */
  def close(): Unit = synchronized {
    pending = None
  }

  /** Writes the pending snapshot. Called in the background. */
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
            log"${MDC(LogKeys.STATE_STORE_ID, storeId)}; a later attempt follows",
          e)
    }
  }

  /**
   * Reports a snapshot to Spark's coordinator. Otherwise the coordinator would regard the store as lagging, and
   * request a snapshot with every batch.
   */
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
   * The number of deltas, as a multiple of the usual number, after which a snapshot no longer waits for
   * maintenance. After twice as many, the batch waits for the snapshot.
   */
  private val LongestChain = 10

  private lazy val background = ThreadUtils.newDaemonSingleThreadExecutor("changelog-snapshots")
}

/**
 * An immutable view of a table's entries.
 *
 * @param addresses
 *   of put entries, then zeros, then of removed entries
 * @param numPut
 *   the number of put entries
 * @param firstRemoved
 *   the index of the first removed entry
 */
private[state] final class StateView(
    val records: RowPages.View,
    addresses: LongBlock,
    numPut: Int,
    firstRemoved: Int) {

  /** Calls `use` with the address of each put entry. */
  def foreachPut(use: Long => Unit): Unit = foreach(0, numPut, use)

  /** Calls `use` with the last address of each removed entry. */
  def foreachRemoved(use: Long => Unit): Unit = foreach(firstRemoved, addresses.length, use)

  private def foreach(from: Int, until: Int, use: Long => Unit): Unit = {
    var index = from
    while (index < until) {
      if (addresses(index) != 0) use(addresses(index))
      index += 1
    }
  }
}
