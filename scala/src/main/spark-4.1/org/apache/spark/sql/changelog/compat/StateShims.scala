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

/** Opens a version of a store as one that holds nothing, whatever there is of it. */
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
      // this version of Spark can't be told to begin with nothing, but reads a snapshot without files
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

/** By what rows of one of Spark's own operators are shuffled, which this version does not say. */
private[compat] sealed trait PlacementKeys {
  def columns: StructType

  def of(key: UnsafeRow): UnsafeRow
}

private[compat] object PlacementKeys {

  /** Throws whatever makes that unknown. */
  def apply(
      operator: String,
      store: String,
      key: StructType,
      joinFormat: Option[Int]): PlacementKeys =
    throw new UnsupportedOperationException(s"$operator, $store")
}

/** Checksums of rows in files of state, which this version does not know. */
object RowChecksums {

  /** Whether they are wanted. */
  def areWanted(conf: StateStoreConf): Boolean = false

  /** How many bytes a checksum takes, before those of the row. */
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

/** Whether Spark keeps state for a node; this version says it to nobody. */
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

/** How this version asks for a state store. */
trait VersionStateProvider extends StateStoreProvider {

  /** The store of a version, as later versions of Spark ask for it. */
  private[changelog] def openStore(
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean): StateStore

  override final def getStore(version: Long, stateStoreCkptId: Option[String]): StateStore =
    openStore(version, stateStoreCkptId, forceSnapshotOnCommit = false, loadEmpty = false)
}

/** What only this version's state stores can do. */
trait VersionStateStore extends StateStore {

  /** Refuses what is for several values. */
  protected def oneValuePerKey(): Nothing
}
