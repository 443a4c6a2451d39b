// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.state.{
  RocksDBFileManager,
  StateStore,
  StateStoreConf,
  StateStoreProvider
}
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
