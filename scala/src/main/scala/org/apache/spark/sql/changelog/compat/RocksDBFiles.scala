// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.io.InputStream
import java.nio.file.{Files, StandardCopyOption}
import java.util.zip.ZipInputStream

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.io.CompressionCodec
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.state.{
  RocksDBCheckpointMetadata,
  RocksDBImmutableFile,
  StateStoreChangelogReaderFactory
}

/** Which files a version of RocksDB's state consists of, as the archive of the version tells. */
object RocksDBFiles {

  /** Those beside the archive, each with the folder that holds it. */
  def besides(archive: InputStream): Seq[String] = {
    val listed = Files.createTempFile("rocksdb-files", ".json")
    try {
      Using.resource(new ZipInputStream(archive)) { entries =>
        Iterator
          .continually(entries.getNextEntry)
          .takeWhile(_ != null)
          .find(_.getName == Listing)
          .getOrElse(throw new IllegalStateException(s"there is no $Listing in it"))
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
   * What a version is made of whose attempts each have files of their own: the versions from a snapshot on, each with
   * the attempt that counts, as the file that holds its changes tells.
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
