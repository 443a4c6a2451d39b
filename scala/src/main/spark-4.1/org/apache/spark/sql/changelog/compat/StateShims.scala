// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.streaming.state.{RocksDBFileManager, StateStore, StateStoreConf, StateStoreProvider}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.Utils

/** Opens a version of a store as an empty store, whatever files the version has. */
private[compat] object EmptyStores {
  def open(
      provider: StateStoreProvider,
      version: Long,
      storeConf: StateStoreConf,
      hadoopConf: Configuration): StateStore = provider match {
    case ours: VersionStateProvider =>
      ours.openStore(version, None, forceSnapshotOnCommit = true, loadEmpty = true)
    case rocksDB if version == 0 => rocksDB.getStore(0, None)
    case rocksDB =>
      // Spark 4.1 cannot start RocksDB empty at a version, but reads a snapshot without files
      val stateId = Option.when(storeConf.enableStateStoreCheckpointIds)(UUID.randomUUID.toString)
      val folder = rocksDB.stateStoreId.storeCheckpointLocation()
      writeSnapshot(folder, version, stateId, hadoopConf)
      rocksDB.getStore(version, stateId)
  }

  private def writeSnapshot(
      folder: Path,
      version: Long,
      stateId: Option[String],
      hadoopConf: Configuration): Unit = {
    folder.getFileSystem(hadoopConf).mkdirs(folder)
    val nothing = Utils.createTempDir()
    try {
      new RocksDBFileManager(folder.toString, nothing, hadoopConf).saveCheckpointToDfs(
        nothing,
        version,
        numKeys = 0,
        numInternalKeys = 0,
        fileMapping = Map.empty,
        checkpointUniqueId = stateId)
    } finally Utils.deleteRecursively(nothing)
  }
}

/** The shuffle columns of Spark's own operators. Spark 4.1 does not expose them. */
private[compat] sealed trait PlacementKeys {
  def columns: StructType

  def of(key: UnsafeRow): UnsafeRow
}

private[compat] object PlacementKeys {

  /** Throws an exception if the columns are unknown. */
  def apply(
      operator: String,
      store: String,
      key: StructType,
      joinFormat: Option[Int]): PlacementKeys =
    throw new UnsupportedOperationException(s"$operator, $store")
}

/** Checksums of rows in state files, absent in Spark 4.1. */
object RowChecksums {

  /** Returns whether checksums are on. */
  def areWanted(conf: StateStoreConf): Boolean = false

  /** The size of a checksum, before the bytes of the row. */
  val Size: Int = 0

  def ofRemoved(key: Array[Byte]): Array[Byte] = none()

  def ofEntry(key: Array[Byte], value: Array[Byte]): Array[Byte] = none()

  final class Verifier(store: String) {
    def checkRemoved(bytes: Array[Byte], start: Int, end: Int, sum: Int): Unit = none()

    def checkEntry(
        key: Array[Byte],
        keySize: Int,
        bytes: Array[Byte],
        start: Int,
        end: Int,
        sum: Int): Unit = none()
  }

  private def none(): Nothing =
    throw SparkException.internalError("There are no checksums of rows in Spark 4.1")
}

/** Determines whether Spark keeps state for a node, because Spark 4.1 does not expose this. */
private[compat] object StatefulNode {
  def apply(node: LogicalPlan): Boolean = node.isStreaming && (node match {
    case join: Join => join.left.isStreaming && join.right.isStreaming
    case rows: Deduplicate =>
      rows.keys.exists(_.metadata.contains(EventTimeWatermark.delayKey))
    case _: Aggregate | _: Distinct | _: DeduplicateWithinWatermark | _: FlatMapGroupsWithState |
        _: FlatMapGroupsInPandasWithState | _: TransformWithState |
        _: TransformWithStateInPySpark =>
      true
    case _ => false
  })
}

/** Spark 4.1's methods to request a state store. */
trait VersionStateProvider extends StateStoreProvider {

  /** Returns the store of a version, with the parameters of later versions of Spark. */
  private[changelog] def openStore(
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean): StateStore

  override final def getStore(version: Long, stateStoreCkptId: Option[String]): StateStore =
    openStore(version, stateStoreCkptId, forceSnapshotOnCommit = false, loadEmpty = false)
}

/** The operations of Spark 4.1's state stores. */
trait VersionStateStore extends StateStore {

  /** Fails for operations with several values per key. */
  protected def oneValuePerKey(): Nothing
}
