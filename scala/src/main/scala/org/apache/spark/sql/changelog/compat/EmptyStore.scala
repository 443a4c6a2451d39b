// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.util.UUID

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state.{
  NoPrefixKeyStateEncoderSpec,
  RocksDBStateStoreProvider,
  StateStoreConf,
  StateStoreId,
  StateStoreProvider
}
import org.apache.spark.sql.types.{LongType, StructType}

/** Writes versions of stores that hold nothing, and follow none before. */
object EmptyStore {
  // of nothing, so that it may be any
  private val schema = new StructType().add("none", LongType)

  /**
   * Writes the store of one partition.
   *
   * @param location
   *   the folder with the state of all operators
   * @param version
   *   the version that is written
   * @param otherwise
   *   makes what writes the files of all providers but RocksDB's
   */
  def write(
      session: SparkSession,
      location: String,
      operator: Long,
      partition: Int,
      version: Long,
      otherwise: () => StateStoreProvider): Unit = {
    val storeConf = new StateStoreConf(session.sessionState.conf)
    val hadoopConf = session.sessionState.newHadoopConf()
    hadoopConf.set(StreamExecution.RUN_ID_KEY, UUID.randomUUID.toString)
    val provider =
      if (storeConf.providerClass == classOf[RocksDBStateStoreProvider].getName) {
        new RocksDBStateStoreProvider
      } else otherwise()
    try {
      provider.init(
        StateStoreId(location, operator, partition),
        schema,
        schema,
        NoPrefixKeyStateEncoderSpec(schema),
        useColumnFamilies = false,
        storeConf,
        hadoopConf)
      provider
        .getStore(version - 1, None, forceSnapshotOnCommit = true, loadEmpty = true)
        .commit()
      ()
    } finally provider.close()
  }
}
