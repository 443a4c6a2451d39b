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
 * Reads and writes whole versions of state stores outside a query. A written version needs no earlier version.
 *
 * @param otherwise
 *   creates the provider for files of providers other than RocksDB's
 */
final class WholeStores private (
    storeConf: StateStoreConf,
    confs: Broadcast[SerializableConfiguration],
    otherwise: () => StateStoreProvider)
    extends Serializable {

  def hadoopConf: Configuration = confs.value.value

  /**
   * Returns the entries of a version. Called within a task; the entries are valid until the task ends.
   *
   * @param stateId
   *   the id of the committed files, for checkpoints with separate files per task attempt
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

  /** Writes a version with the entries that `fill` puts. Returns the id of the committed files, if files have ids. */
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

  /** Writes a version without entries, for any columns. */
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

  /** Returns whether the files of a Spark provider can be read and written. */
  def canRead(provider: String): Boolean =
    Seq(classOf[RocksDBStateStoreProvider], classOf[HDFSBackedStateStoreProvider])
      .exists(_.getName == provider)

  /** Returns the stores for a query with these settings. */
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
