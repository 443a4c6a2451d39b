// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.io.InputStream
import java.nio.file.{Files, StandardCopyOption}
import java.util.zip.ZipInputStream

import scala.util.Using

import org.apache.spark.sql.execution.streaming.state.{
  RocksDBCheckpointMetadata,
  RocksDBImmutableFile
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

  private val Listing = "metadata"
}
