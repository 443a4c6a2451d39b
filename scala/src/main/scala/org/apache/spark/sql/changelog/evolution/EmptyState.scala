// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import java.util.UUID

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.{LongType, StructType}
import org.apache.spark.util.ThreadUtils

import org.apache.spark.sql.changelog.state.PagedStateProvider

/**
 * Writes state that holds nothing, of operators that begin with a batch which is not the query's first.
 *
 * @param location
 *   the folder that holds that of all operators
 * @param version
 *   which the batch will read
 */
private[evolution] class EmptyState(
    session: SparkSession,
    location: Path,
    version: Long,
    numPartitions: Int) {
  private val storeConf = new StateStoreConf(session.sessionState.conf)
  // of nothing, so that it may be any
  private val schema = new StructType().add("none", LongType)

  def apply(operators: Seq[Long]): Unit = {
    val stores = for {
      operator <- operators
      partition <- 0 until numPartitions
    } yield StateStoreId(location.toString, operator, partition)
    ThreadUtils.parmap(stores, "empty-state", NumThreads)(write)
    ()
  }

  private def write(id: StateStoreId): Unit = {
    val hadoopConf = session.sessionState.newHadoopConf()
    hadoopConf.set(StreamExecution.RUN_ID_KEY, UUID.randomUUID.toString)
    // pages are kept in files that Spark's own provider reads too
    val provider =
      if (storeConf.providerClass == classOf[RocksDBStateStoreProvider].getName) {
        new RocksDBStateStoreProvider
      } else new PagedStateProvider
    try {
      provider.init(
        id,
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

  private val NumThreads = 8
}
