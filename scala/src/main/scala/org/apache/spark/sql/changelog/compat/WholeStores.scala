// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.io.InputStream
import java.nio.file.{Files, StandardCopyOption}
import java.util.UUID
import java.util.zip.ZipInputStream

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.TaskContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.io.CompressionCodec
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
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

/** The files of a version of RocksDB state, as listed in the version's archive. */
object RocksDBFiles {

  /** Returns the files outside the archive, each with its folder. */
  def besides(archive: InputStream): Seq[String] = {
    val listed = Files.createTempFile("rocksdb-files", ".json")
    try {
      Using.resource(new ZipInputStream(archive)) { entries =>
        Iterator
          .continually(entries.getNextEntry)
          .takeWhile(_ != null)
          .find(_.getName == Listing)
          .getOrElse(throw new IllegalStateException(s"the archive has no $Listing"))
        Files.copy(entries, listed, StandardCopyOption.REPLACE_EXISTING)
      }
      val version = RocksDBCheckpointMetadata.readFromFile(listed.toFile)
      version.immutableFiles.map { file =>
        val folder =
          if (RocksDBImmutableFile.isSstFile(file.dfsFileName)) {
            RocksDBImmutableFile.SST_FILES_DFS_SUBDIR
          } else RocksDBImmutableFile.LOG_FILES_DFS_SUBDIR
        s"$folder/${file.dfsFileName}"
      }
    } finally {
      Files.deleteIfExists(listed)
      ()
    }
  }

  /**
   * Returns the versions that a version consists of, starting with a snapshot, for checkpoints with separate
   * files per task attempt. Each version has the id of its committed attempt. The version's changelog file
   * lists these ids.
   */
  def attemptsBefore(
      session: SparkSession,
      changes: Path,
      hadoopConf: Configuration): Seq[(Long, String)] = {
    val codec = CompressionCodec.createCodec(
      session.sparkContext.conf,
      session.sessionState.conf.stateStoreCompressionCodec)
    val files = CheckpointFileManager.create(changes.getParent, hadoopConf)
    val reader =
      new StateStoreChangelogReaderFactory(files, changes, codec).constructChangelogReader()
    try reader.lineage.toSeq.map(item => item.version -> item.checkpointUniqueId).sortBy(_._1)
    finally reader.closeIfNeeded()
  }

  private val Listing = "metadata"
}
