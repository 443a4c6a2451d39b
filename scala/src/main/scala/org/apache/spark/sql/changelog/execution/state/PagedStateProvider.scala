// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.state

import java.util.concurrent.atomic.AtomicReference

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration

import org.apache.spark.internal.{LogKeys, Logging}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.NextIterator

/**
 * Keeps one version of a partition's state in memory, in pages of bytes, and changes it in place.
 *
 * Spark's in-memory provider copies its map for every batch, and holds each row as objects. Here
 * a batch costs what it changes. What it changed can be taken back until the next one begins,
 * for a task that fails or runs again; any other version is read from the files.
 *
 * The files are those of Spark's provider, which also reads and cleans them up here: a query may
 * go from one provider to the other.
 */
class PagedStateProvider extends StateStoreProvider with SupportsFineGrainedReplay with Logging {
  import PagedStateProvider._

  private var newReader: () => HDFSBackedStateStoreProvider = _
  private var newTable: () => StateTable = _
  private var storeConf: StateStoreConf = _
  private var files: StateFiles = _
  private var hadoopConf: Configuration = _
  private var storeId: StateStoreId = _

  /** Reads versions and removes files that are no longer needed. */
  private var reader: HDFSBackedStateStoreProvider = _

  // guarded by this
  private var table: StateTable = _
  private var version = -1L
  private var canRollBack = false
  private var store: PagedStateStore = _
  private var snapshotVersion = 0L

  @volatile private var isSnapshotWanted = true
  private val pendingSnapshot = new AtomicReference[(Long, StateView)]

  override def init(
      stateStoreId: StateStoreId,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useColumnFamilies: Boolean,
      storeConfs: StateStoreConf,
      hadoopConf: Configuration,
      useMultipleValuesPerKey: Boolean,
      stateSchemaProvider: Option[StateSchemaProvider]): Unit = {
    val numPrefixColumns = keyStateEncoderSpec match {
      case PrefixKeyScanStateEncoderSpec(_, numColumns) => numColumns
      case _ => 0
    }
    newReader = () => {
      // it refuses what neither of us can do
      val reader = new HDFSBackedStateStoreProvider
      reader.init(
        stateStoreId,
        keySchema,
        valueSchema,
        keyStateEncoderSpec,
        useColumnFamilies,
        storeConfs,
        hadoopConf,
        useMultipleValuesPerKey,
        stateSchemaProvider)
      reader
    }
    newTable = () => new StateTable(keySchema, valueSchema.length, numPrefixColumns)
    storeConf = storeConfs
    storeId = stateStoreId
    this.hadoopConf = hadoopConf
    files = new StateFiles(stateStoreId.storeCheckpointLocation(), storeConfs, hadoopConf)
    reader = newReader()
  }

  override def stateStoreId: StateStoreId = storeId

  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] =
    Seq(PagedStateStore.EntryBytes)

  override def getStore(
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean): StateStore = synchronized {
    if (stateStoreCkptId.isDefined || loadEmpty) {
      // says why not
      newReader().getStore(version, stateStoreCkptId, forceSnapshotOnCommit, loadEmpty)
    } else {
      awaitStore()
      if (store != null) store.abort()
      load(version)
      table.begin()
      canRollBack = false
      store = new PagedStateStore(storeId, version, table, finish(_, _, forceSnapshotOnCommit))
      store
    }
  }

  override def getReadStore(version: Long, uniqueId: Option[String]): ReadStateStore =
    synchronized {
      if (uniqueId.isDefined) newReader().getReadStore(version, uniqueId)
      else {
        awaitStore()
        load(version)
        new WrappedReadStateStore(new PagedStateStore(storeId, version, table, (_, _) => ()))
      }
    }

  override def doMaintenance(): Unit =
    try {
      Option(pendingSnapshot.getAndSet(null)).foreach { case (version, view) =>
        files.writeSnapshot(version, view)
      }
      isSnapshotWanted = true
      reader.doMaintenance()
    } catch {
      case NonFatal(e) =>
        logWarning(log"Error in maintenance of ${MDC(LogKeys.STATE_STORE_PROVIDER, this)}", e)
    }

  override def close(): Unit = synchronized {
    table = null
    version = -1
    reader.close()
  }

  override def toString: String = s"PagedStateProvider[id=$storeId]"

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
      if (table != null && canRollBack && version == wanted + 1) table.rollback()
      else {
        table = null
        table = read(wanted)
        snapshotVersion = files.snapshotUpTo(wanted)
      }
      canRollBack = false
      version = wanted
    }

  private def read(wanted: Long): StateTable = {
    val read = newTable()
    if (wanted != 0) {
      val entries = reader.getReadStore(wanted, None).iterator(StateStore.DEFAULT_COL_FAMILY_NAME)
      entries.foreach { entry => read.put(entry.key, entry.value) }
      read.begin()
      // it would hold what it has read
      reader.close()
      reader = newReader()
    }
    read
  }

  private def finish(finished: PagedStateStore, isCommit: Boolean, forceSnapshot: Boolean): Unit =
    synchronized {
      if (finished eq store) {
        if (isCommit) {
          files.writeDelta(version + 1, table.changes())
          version += 1
          canRollBack = true
          snapshot(forceSnapshot)
          if (storeConf.commitValidationEnabled) {
            StateStore.reportCommitToCoordinator(version, storeId, hadoopConf)
          }
        } else table.rollback()
        store = null
        notifyAll()
      }
    }

  /** Takes a snapshot, if it is time, to be written by the next maintenance. */
  private def snapshot(force: Boolean): Unit = {
    val numDeltas = version - snapshotVersion
    if (force || numDeltas > LongestChain * storeConf.minDeltasForSnapshot) {
      files.writeSnapshot(version, table.view())
      snapshotVersion = version
    } else if (isSnapshotWanted && numDeltas > storeConf.minDeltasForSnapshot) {
      pendingSnapshot.set((version, table.view()))
      isSnapshotWanted = false
      snapshotVersion = version
    }
  }

  override def replayStateFromSnapshot(
      snapshotVersion: Long,
      endVersion: Long,
      readOnly: Boolean,
      snapshotVersionStateStoreCkptId: Option[String],
      endVersionStateStoreCkptId: Option[String]): StateStore =
    reader.replayStateFromSnapshot(
      snapshotVersion,
      endVersion,
      readOnly,
      snapshotVersionStateStoreCkptId,
      endVersionStateStoreCkptId)

  override def getStateStoreChangeDataReader(
      startVersion: Long,
      endVersion: Long,
      colFamilyNameOpt: Option[String],
      endVersionStateStoreCkptId: Option[String])
      : NextIterator[(RecordType.Value, UnsafeRow, UnsafeRow, Long)] =
    reader.getStateStoreChangeDataReader(
      startVersion,
      endVersion,
      colFamilyNameOpt,
      endVersionStateStoreCkptId)
}

private[state] object PagedStateProvider {

  /** How long a task waits for another to let go of the state, in ms. */
  private val LongestWait = 60000L

  /** After how many times the usual number of deltas a snapshot no longer waits for maintenance. */
  private val LongestChain = 10
}
