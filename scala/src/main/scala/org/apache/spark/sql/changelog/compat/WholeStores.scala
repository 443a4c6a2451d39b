// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.util.UUID

import org.apache.hadoop.conf.Configuration

import org.apache.spark.TaskContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{LongType, StructType}
import org.apache.spark.util.SerializableConfiguration

/**
 * Reads whole versions of state stores, and writes ones that follow none before, outside of a query.
 *
 * @param otherwise
 *   makes what reads and writes the files of all providers but RocksDB's
 */
final class WholeStores private (
    storeConf: StateStoreConf,
    confs: Broadcast[SerializableConfiguration],
    otherwise: () => StateStoreProvider)
    extends Serializable {

  def hadoopConf: Configuration = confs.value.value

  /**
   * All entries of a version, as long as the task runs. Called within one.
   *
   * @param stateId
   *   which files of it count, where each attempt of a task leaves some
   */
  def read(
      id: StateStoreId,
      version: Long,
      columns: StateStores.Columns,
      stateId: Option[String]): Iterator[UnsafeRowPair] = {
    val provider = open(id, columns)
    val store = provider.getReadStore(version, stateId)
    TaskContext.get().addTaskCompletionListener[Unit] { _ =>
      store.release()
      provider.close()
    }
    store.iterator()
  }

  /** Writes a version, which then holds what `fill` puts into it. Gives which files of it count, where that is to be said. */
  def write(id: StateStoreId, version: Long, columns: StateStores.Columns)(
      fill: StateStore => Unit): Option[String] = {
    val provider = open(id, columns)
    try {
      val store = EmptyStores.open(provider, version - 1, storeConf, hadoopConf)
      try {
        fill(store)
        store.commit()
        store.getStateStoreCheckpointInfo().stateStoreCkptId
      } finally if (!store.hasCommitted) store.abort()
    } finally provider.close()
  }

  /** The same for one that holds nothing, whatever its columns are. */
  def writeEmpty(id: StateStoreId, version: Long): Option[String] =
    write(id, version, WholeStores.NoColumns)(_ => ())

  private def open(id: StateStoreId, columns: StateStores.Columns): StateStoreProvider = {
    val provider =
      if (storeConf.providerClass == classOf[RocksDBStateStoreProvider].getName) {
        new RocksDBStateStoreProvider
      } else otherwise()
    val ofRun = new Configuration(hadoopConf)
    ofRun.set(StreamExecution.RUN_ID_KEY, UUID.randomUUID.toString)
    provider.init(
      id,
      columns.key,
      columns.value,
      columns.keyEncoder,
      useColumnFamilies = false,
      storeConf,
      ofRun)
    provider
  }
}

object WholeStores {
  private val NoColumns = {
    val schema = new StructType().add("none", LongType)
    StateStores.Columns(schema, schema, NoPrefixKeyStateEncoderSpec(schema))
  }

  /** Whether it reads and writes the files of a provider of Spark's. */
  def canRead(provider: String): Boolean =
    Seq(classOf[RocksDBStateStoreProvider], classOf[HDFSBackedStateStoreProvider])
      .exists(_.getName == provider)

  /** Stores as a query with these settings has them. */
  def apply(
      session: SparkSession,
      conf: SQLConf,
      otherwise: () => StateStoreProvider): WholeStores = {
    val hadoopConf = session.sessionState.newHadoopConf()
    new WholeStores(
      new StateStoreConf(conf),
      SerializableConfiguration.broadcast(session.sparkContext, hadoopConf),
      otherwise)
  }
}
