// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.NextIterator

/**
 * A provider of state stores that keep one value per key, over the files of Spark's in-memory provider,
 * which cleans them up, and reads for those who look into a checkpoint.
 *
 * @param name
 *   what it is called in errors
 */
abstract class DelegatingStateProvider(name: String)
    extends VersionStateProvider
    with SupportsFineGrainedReplay {
  private var sparkProvider: HDFSBackedStateStoreProvider = _
  private var storeId: StateStoreId = _
  private var hadoopConf: Configuration = _

  /** Refuses settings that it can't work with. */
  protected def check(storeConf: StateStoreConf): Unit

  /** Called once, when it is known what is kept. */
  protected def begin(
      keySchema: StructType,
      valueSchema: StructType,
      numPrefixColumns: Int,
      storeConf: StateStoreConf,
      hadoopConf: Configuration): Unit

  /**
   * The store of a version, to be changed.
   *
   * @param isEmpty
   *   whether it holds nothing, whatever there is of that version
   */
  protected def storeOf(
      version: Long,
      isEmpty: Boolean,
      forceSnapshotOnCommit: Boolean): StateStore

  /** The store of a version that is only read. */
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
    // Spark's provider refuses what neither of the two can do
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

  /** Tells Spark's coordinator of a commit, if it wants to know. */
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
