// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.File
import java.nio.file.Path
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.util.Random
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration

import org.apache.spark.internal.{LogKeys, Logging}
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.state.{
  StateStore, StateStoreConf, StateStoreCustomMetric, StateStoreId
}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.{ThreadUtils, Utils}
import org.apache.spark.{SparkConf, SparkEnv}

import org.apache.spark.sql.changelog.compat.{DelegatingStateProvider, Setting}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime

/**
 * Keeps a single version of a partition's state in memory, in pages of bytes, and changes the version in place.
 *
 * Spark's in-memory provider copies its map for every batch and holds each row as objects. Here, the cost of a
 * batch is proportional to its changes. The changes can be rolled back until the next batch begins, for a task
 * that fails or runs again. Any other version is read from the files.
 *
 * The files are those of Spark's in-memory provider, which also deletes old files here. A query may therefore
 * switch between the two providers.
 */
class PagedStateProvider extends DelegatingStateProvider("PagedStateStoreProvider") with Logging {
  import PagedStateProvider._

  private var newTable: () => PagedTable = _
  private var layout: Any = _
  private var keptFor = 0L
  private var storeConf: StateStoreConf = _
  private var files: StateFiles = _
  private var snapshots: StateSnapshots = _

  // guarded by this
  private var table: PagedTable = _
  private var version = -1L
  private var canRollBack = false
  private var store: PagedStateStore = _
  // of the file that the version was written to, if this provider has written it
  private var stamp = Option.empty[(Long, Long)]

  override protected def check(storeConf: StateStoreConf): Unit =
    if (storeConf.enableStateStoreCheckpointIds) {
      throw runtime(
        "CHANGELOG_CHECKPOINT_FORMAT_NOT_SUPPORTED",
        "version" -> storeConf.stateStoreCheckpointFormatVersion)
    }

  override protected def begin(
      keySchema: StructType,
      valueSchema: StructType,
      numPrefixColumns: Int,
      storeConf: StateStoreConf,
      hadoopConf: Configuration): Unit = {
    val fraction = storeConf.sqlConfs.get(HeapFraction.key).map(HeapFraction.valueConverter)
    val heapBytes = fraction.getOrElse(DefaultHeapFraction) *
      math.max(0, Runtime.getRuntime.maxMemory - ReservedBytes)
    newTable = () => {
      val memory = new StateMemory(heapBytes.toLong, () => localDirectory, toString)
      new PagedTable(keySchema, valueSchema.length, numPrefixColumns, memory)
    }
    layout = (keySchema, valueSchema, numPrefixColumns)
    keptFor = storeConf.sqlConfs.get(KeptFor.key).fold(DefaultKeptFor)(KeptFor.valueConverter)
    this.storeConf = storeConf
    files = new StateFiles(
      stateStoreId.storeCheckpointLocation(),
      new RowLayout(stateStoreId, keySchema, valueSchema, storeConf),
      storeConf,
      hadoopConf)
    snapshots = new StateSnapshots(files, stateStoreId, storeConf, hadoopConf)
  }

  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] =
    Seq(PagedStateStore.EntryBytes, PagedStateStore.FileBytes)

  override protected def storeOf(
      version: Long,
      isEmpty: Boolean,
      forceSnapshotOnCommit: Boolean): StateStore = synchronized {
    awaitStore()
    if (store != null) store.abort()
    if (isEmpty) empty(version) else load(version)
    table.begin()
    canRollBack = false
    // a version after an empty version without a file can only be read from a snapshot
    val needsSnapshot = forceSnapshotOnCommit || isEmpty
    store = new PagedStateStore(stateStoreId, version, table, finish(_, _, needsSnapshot))
    store
  }

  override protected def storeToRead(version: Long): StateStore =
    synchronized {
      awaitStore()
      load(version)
      new PagedStateStore(stateStoreId, version, table, (_, _) => ())
    }

  override def doMaintenance(): Unit =
    try {
      snapshots.maintain()
      super.doMaintenance()
    } catch {
      case NonFatal(e) =>
        logWarning(log"Error in maintenance of ${MDC(LogKeys.STATE_STORE_PROVIDER, this)}", e)
    }

  /** Keeps the table for a while, for the next run of the query in this process. */
  override def close(): Unit = synchronized {
    val isKept = stamp.nonEmpty && store == null && keptFor > 0 &&
      (newest.get(stateStoreId) eq this) && table.moveToFiles()
    val end: Runnable = () => release()
    if (isKept) releases.schedule(end, keptFor, TimeUnit.SECONDS) else end.run()
    snapshots.close()
    super.close()
  }

  private def release(): Unit = synchronized {
    newest.remove(stateStoreId, this)
    if (table != null) table.close()
    forget()
  }

  /** Returns the table to the provider of the next run, if this provider has written the version last. */
  private def passTable(wanted: Long, wantedLayout: Any): Option[PagedTable] = synchronized {
    val isSame = table != null && store == null && version == wanted && layout == wantedLayout &&
      stamp.nonEmpty && stamp == files.stampOf(wanted)
    Option.when(isSame) {
      val handed = table
      forget()
      handed
    }
  }

  private def tableOf(wanted: Long): PagedTable = {
    val before = newest.get(stateStoreId)
    val handed =
      if (before == null || (before eq this)) None else before.passTable(wanted, layout)
    handed.getOrElse(files.read(wanted, newTable))
  }

  override def toString: String = s"PagedStateProvider[id=$stateStoreId]"

  /** Waits until the previous attempt has ended, because a single task may use the table at a time. */
  private def awaitStore(): Unit = {
    val deadline = System.nanoTime() + MaxWait * 1000000
    while (store != null && (store.owner ne Thread.currentThread()) &&
      System.nanoTime() < deadline) {
      wait(100)
    }
    if (store != null && (store.owner ne Thread.currentThread())) {
      throw QueryExecutionErrors.unreleasedThreadError(
        toString,
        "load",
        Thread.currentThread().toString,
        store.owner.toString,
        MaxWait,
        store.owner.getStackTrace.mkString("\n"))
    }
  }

  /** Loads a version into the table. */
  private def load(wanted: Long): Unit =
    if (table == null || version != wanted) {
      if (wanted < 0) throw QueryExecutionErrors.unexpectedStateStoreVersion(wanted)
      val isBefore = table != null && canRollBack && version == wanted + 1
      val before = table
      // until loading succeeds, the table has no version
      forget()
      if (isBefore) before.rollback() else if (before != null) before.close()
      snapshots.continueFrom(wanted, isBefore)
      table = if (isBefore) before else tableOf(wanted)
      version = wanted
    }

  /** Replaces the table by an empty table, whatever the files of the version contain. */
  private def empty(wanted: Long): Unit = {
    if (table != null) table.close()
    forget()
    snapshots.continueFrom(wanted, isSame = false)
    table = newTable()
    version = wanted
  }

  /** Drops the table, because it may differ from the files. The next caller reads the files. */
  private def forget(): Unit = {
    table = null
    version = -1
    canRollBack = false
    stamp = None
  }

  private def finish(finished: PagedStateStore, isCommit: Boolean, forceSnapshot: Boolean): Unit =
    synchronized {
      if (finished eq store) {
        try if (isCommit) commit(finished, forceSnapshot) else finished.table.rollback()
        catch {
          case e: Throwable =>
            forget()
            throw e
        } finally {
          store = null
          notifyAll()
        }
      } else if (isCommit) {
        throw new IllegalStateException("Cannot commit: another attempt has taken over the state")
      }
    }

  /** Commits a version by writing its delta. A snapshot is optional. */
  private def commit(committed: PagedStateStore, forceSnapshot: Boolean): Unit = {
    val (table, newVersion) = (committed.table, committed.version + 1)
    snapshots.beforeCommit(newVersion)
    files.writeDelta(newVersion, table.changes())
    // unless the provider was closed meanwhile
    if (table eq this.table) {
      version = newVersion
      canRollBack = true
      stamp = if (keptFor > 0) files.stampOf(newVersion) else None
      val before = newest.put(stateStoreId, this)
      if (before != null && (before ne this)) releases.execute(() => before.release())
    }
    snapshots.afterCommit(newVersion, forceSnapshot, () => table.view())
    reportCommit(newVersion, storeConf)
  }
}

private[state] object PagedStateProvider {

  /** The maximum time to wait for another task's store, in ms. */
  private val MaxWait = 60000L

  /** The fraction of the heap left by Spark's own memory, whose default fraction is 0.6. */
  private val DefaultHeapFraction = 0.4

  /** The part of the heap that Spark reserves for its own objects before it divides the rest. */
  private val ReservedBytes = 300L * 1024 * 1024

  private val HeapFraction = Setting("spark.sql.streaming.stateStore.pages.heapFraction")
    .doc(
      "The fraction of an executor's heap, without 300 MiB, for the state of all partitions. The " +
        "rest goes to files in the executor's local directories. With 0, only state being " +
        "written is on the heap.")
    .version("0.1.0")
    .doubleConf
    .checkValue(fraction => fraction >= 0 && fraction <= 1, "must be between 0 and 1")
    .createWithDefault(DefaultHeapFraction)

  private val DefaultKeptFor = 600L

  private val KeptFor = Setting("spark.sql.streaming.stateStore.pages.keptFor")
    .doc("How long the state of a query that has ended stays in memory. A query that starts again in the same " +
      "process, such as the next refresh of a view, need not read it from the checkpoint then. 0 forgets it.")
    .version("0.1.0")
    .timeConf(TimeUnit.SECONDS)
    .checkValue(_ >= 0, "must not be negative")
    .createWithDefault(DefaultKeptFor)

  /** The provider that has written the last version of a store in this process. */
  private val newest = new ConcurrentHashMap[StateStoreId, PagedStateProvider]

  private lazy val releases =
    ThreadUtils.newDaemonSingleThreadScheduledExecutor("changelog-state-releases")

  private def localDirectory: Path = {
    val conf = Option(SparkEnv.get).fold(new SparkConf)(_.conf)
    val directories = Utils.getOrCreateLocalRootDirs(conf)
    new File(directories(Random.nextInt(directories.length))).toPath
  }
}
