// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.File
import java.nio.file.Path

import scala.util.Random
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration

import org.apache.spark.internal.{LogKeys, Logging}
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.state.{
  StateStore,
  StateStoreConf,
  StateStoreCustomMetric
}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.Utils
import org.apache.spark.{SparkConf, SparkEnv}

import org.apache.spark.sql.changelog.compat.{DelegatingStateProvider, Setting}
import org.apache.spark.sql.changelog.errors.CheckpointFileErrors

/**
 * Keeps one version of a partition's state in memory, in pages of bytes, and changes it in place.
 *
 * Spark's in-memory provider copies its map for every batch, and holds each row as objects. Here
 * a batch costs what it changes. What it changed can be taken back until the next one begins,
 * for a task that fails or runs again; any other version is read from the files.
 *
 * The files are those of Spark's provider, which also cleans them up here: a query may go from one
 * provider to the other.
 */
class PagedStateProvider extends DelegatingStateProvider("PagedStateStoreProvider") with Logging {
  import PagedStateProvider._

  private var newTable: () => PagedTable = _
  private var storeConf: StateStoreConf = _
  private var files: StateFiles = _
  private var snapshots: StateSnapshots = _

  // guarded by this
  private var table: PagedTable = _
  private var version = -1L
  private var canRollBack = false
  private var store: PagedStateStore = _

  override protected def check(storeConf: StateStoreConf): Unit =
    if (storeConf.enableStateStoreCheckpointIds) {
      throw CheckpointFileErrors.formatNotSupported(storeConf.stateStoreCheckpointFormatVersion)
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
    // what comes after an empty version that no file tells of can be read from a snapshot only
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

  override def close(): Unit = synchronized {
    if (table != null) table.close()
    forget()
    snapshots.close()
    super.close()
  }

  override def toString: String = s"PagedStateProvider[id=$stateStoreId]"

  /** One task at a time: another attempt waits until the one before it has ended. */
  private def awaitStore(): Unit = {
    val deadline = System.nanoTime() + LongestWait * 1000000
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
        LongestWait,
        store.owner.getStackTrace.mkString("\n"))
    }
  }

  /** Makes the table that of a version. */
  private def load(wanted: Long): Unit =
    if (table == null || version != wanted) {
      if (wanted < 0) throw QueryExecutionErrors.unexpectedStateStoreVersion(wanted)
      val isBefore = table != null && canRollBack && version == wanted + 1
      val before = table
      // until it is that version, it is none
      forget()
      if (isBefore) before.rollback() else if (before != null) before.close()
      snapshots.continueFrom(wanted, isBefore)
      table = if (isBefore) before else files.read(wanted, newTable)
      version = wanted
    }

  /** Makes the table an empty one, whatever the files hold of that version. */
  private def empty(wanted: Long): Unit = {
    if (table != null) table.close()
    forget()
    snapshots.continueFrom(wanted, isSame = false)
    table = newTable()
    version = wanted
  }

  /** What is in memory may not be what is in the files; the next one who asks reads them. */
  private def forget(): Unit = {
    table = null
    version = -1
    canRollBack = false
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
        throw new IllegalStateException("Cannot commit what another attempt has taken over")
      }
    }

  /** What is in the delta is committed, whether or not a snapshot is written too. */
  private def commit(committed: PagedStateStore, forceSnapshot: Boolean): Unit = {
    val (table, newVersion) = (committed.table, committed.version + 1)
    snapshots.beforeCommit(newVersion)
    files.writeDelta(newVersion, table.changes())
    // unless the provider was closed meanwhile
    if (table eq this.table) {
      version = newVersion
      canRollBack = true
    }
    snapshots.afterCommit(newVersion, forceSnapshot, () => table.view())
    reportCommit(newVersion, storeConf)
  }
}

private[state] object PagedStateProvider {

  /** How long a task waits for another to let go of the state, in ms. */
  private val LongestWait = 60000L

  /** What Spark's own memory, a fraction of 0.6, leaves to others. */
  private val DefaultHeapFraction = 0.4

  /** What Spark takes out of the heap before it is parted, for objects of its own. */
  private val ReservedBytes = 300L * 1024 * 1024

  private val HeapFraction = Setting("spark.sql.streaming.stateStore.pages.heapFraction")
    .doc(
      "How much of an executor's heap, but for 300 MiB, the state of all its partitions may take; what is " +
        "more goes to files in its local directories. 0 leaves on the heap only what is being written.")
    .version("0.1.0")
    .doubleConf
    .checkValue(fraction => fraction >= 0 && fraction <= 1, "must be between 0 and 1")
    .createWithDefault(DefaultHeapFraction)

  private def localDirectory: Path = {
    val conf = Option(SparkEnv.get).fold(new SparkConf)(_.conf)
    val directories = Utils.getOrCreateLocalRootDirs(conf)
    new File(directories(Random.nextInt(directories.length))).toPath
  }
}
