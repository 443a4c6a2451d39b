// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.NextIterator

/** Delegates to another state store the operations that operators use, with a single value per key. */
abstract class StateStoreWrapper(store: StateStore) extends SingleValueStateStore {
  override def get(key: UnsafeRow, family: String): UnsafeRow = store.get(key, family)

  override def put(key: UnsafeRow, value: UnsafeRow, family: String): Unit =
    store.put(key, value, family)

  override def remove(key: UnsafeRow, family: String): Unit = store.remove(key, family)

  override def prefixScan(prefix: UnsafeRow, family: String): StateStoreIterator[UnsafeRowPair] =
    store.prefixScan(prefix, family)

  override def iterator(family: String): StateStoreIterator[UnsafeRowPair] =
    store.iterator(family)

  override def id: StateStoreId = store.id

  override def version: Long = store.version

  override def metrics: StateStoreMetrics = store.metrics

  override def hasCommitted: Boolean = store.hasCommitted

  override def commit(): Long = store.commit()

  override def abort(): Unit = store.abort()

  override def getStateStoreCheckpointInfo(): StateStoreCheckpointInfo =
    store.getStateStoreCheckpointInfo()

  override def removeColFamilyIfExists(family: String): Boolean = unused

  override def createColFamilyIfAbsent(
      family: String,
      keySchema: StructType,
      valueSchema: StructType,
      keyEncoder: KeyStateEncoderSpec,
      useMultipleValuesPerKey: Boolean,
      isInternal: Boolean): Unit = unused

  override protected def oneValuePerKey(): Nothing = unused

  private def unused: Nothing =
    throw new UnsupportedOperationException("Operators with state keep one value per key")
}

/**
 * A provider of state stores with a single value per key, over the files of Spark's in-memory provider. Spark's
 * provider deletes old files and serves Spark's state readers.
 *
 * @param name
 *   the provider's name in errors
 */
abstract class DelegatingStateProvider(name: String)
    extends VersionStateProvider
    with SupportsFineGrainedReplay {
  private var sparkProvider: HDFSBackedStateStoreProvider = _
  private var storeId: StateStoreId = _
  private var hadoopConf: Configuration = _

  /** Fails for settings that the provider does not support. */
  protected def check(storeConf: StateStoreConf): Unit

  /** Called once, with the schema of the state. */
  protected def begin(
      keySchema: StructType,
      valueSchema: StructType,
      numPrefixColumns: Int,
      storeConf: StateStoreConf,
      hadoopConf: Configuration): Unit

  /**
   * Returns the store of a version, for changes.
   *
   * @param isEmpty
   *   whether the store is empty, whatever files the version has
   */
  protected def storeOf(
      version: Long,
      isEmpty: Boolean,
      forceSnapshotOnCommit: Boolean): StateStore

  /** Returns the store of a version, for reading. */
  protected def storeToRead(version: Long): StateStore

  override final def init(
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
    check(storeConfs)
    // Spark's provider rejects settings that neither provider supports
    sparkProvider = new HDFSBackedStateStoreProvider
    sparkProvider.init(
      stateStoreId,
      keySchema,
      valueSchema,
      keyStateEncoderSpec,
      useColumnFamilies,
      storeConfs,
      hadoopConf,
      useMultipleValuesPerKey,
      stateSchemaProvider)
    storeId = stateStoreId
    this.hadoopConf = hadoopConf
    begin(keySchema, valueSchema, numPrefixColumns, storeConfs, hadoopConf)
  }

  override final def stateStoreId: StateStoreId = storeId

  private[changelog] override final def openStore(
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean): StateStore = {
    refuseIds(stateStoreCkptId)
    storeOf(version, loadEmpty, forceSnapshotOnCommit)
  }

  override final def getReadStore(version: Long, uniqueId: Option[String]): ReadStateStore = {
    refuseIds(uniqueId)
    new WrappedReadStateStore(storeToRead(version))
  }

  override def doMaintenance(): Unit = sparkProvider.doMaintenance()

  override def close(): Unit = sparkProvider.close()

  /** Reports a commit to Spark's coordinator, if commit validation is on. */
  protected def reportCommit(version: Long, storeConf: StateStoreConf): Unit =
    if (storeConf.commitValidationEnabled) {
      StateStore.reportCommitToCoordinator(version, storeId, hadoopConf)
    }

  private def refuseIds(stateStoreCkptId: Option[String]): Unit =
    if (stateStoreCkptId.isDefined) {
      throw StateStoreErrors.stateStoreCheckpointIdsNotSupported(
        s"$name does not support checkpointFormatVersion > 1")
    }

  override def replayStateFromSnapshot(
      snapshotVersion: Long,
      endVersion: Long,
      readOnly: Boolean,
      snapshotVersionStateStoreCkptId: Option[String],
      endVersionStateStoreCkptId: Option[String]): StateStore =
    sparkProvider.replayStateFromSnapshot(
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
    sparkProvider.getStateStoreChangeDataReader(
      startVersion,
      endVersion,
      colFamilyNameOpt,
      endVersionStateStoreCkptId)
}

/** A state store with a single value per key and a single column family. */
trait SingleValueStateStore extends VersionStateStore {
  override def valuesIterator(key: UnsafeRow, family: String): Iterator[UnsafeRow] =
    oneValuePerKey()

  override def putList(key: UnsafeRow, values: Array[UnsafeRow], family: String): Unit =
    oneValuePerKey()

  override def merge(key: UnsafeRow, value: UnsafeRow, family: String): Unit = oneValuePerKey()

  override def mergeList(key: UnsafeRow, values: Array[UnsafeRow], family: String): Unit =
    oneValuePerKey()
}
