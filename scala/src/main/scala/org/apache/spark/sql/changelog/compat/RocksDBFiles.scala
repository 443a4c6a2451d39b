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
  RocksDBCheckpointMetadata, RocksDBImmutableFile, StateStoreChangelogReaderFactory
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
