// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import java.io.Closeable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FileUtil, Path}

import org.apache.spark.sql.changelog.sources.snapshots.SnapshotSource
import org.apache.spark.sql.changelog.sources.tables.{TableCopies, TableVersion}

/**
 * What sources of ours keep beside a checkpoint, to tell what has come after an offset. They delete it when
 * they have come further.
 */
object SourceFiles {

  /**
   * What a source would need to go on from an offset, and no longer has.
   *
   * @param folder
   *   the source's own, in the checkpoint
   * @param offset
   *   as it has put it
   */
  def missing(files: FileSystem, folder: Path, offset: String): Option[Path] = {
    val names = namesIn(files, folder)
    val needed = TableVersion.keptFor(offset, names).orElse(SnapshotSource.keptFor(offset, names))
    needed.filterNot(names).map(new Path(folder, _))
  }

  /**
   * Lets a throw-away query read up to an offset what a source has kept. Copies of tables are read where they
   * are, and stay there until what is given is closed; all else is little, and copied.
   *
   * @param folder
   *   the source's own, in the checkpoint
   * @param into
   *   the one in that of the throw-away query
   */
  def lend(
      folder: Path,
      offset: Option[String],
      into: Path,
      hadoopConf: Configuration): Option[Closeable] = {
    val files = folder.getFileSystem(hadoopConf)
    val names = namesIn(files, folder)
    offset.flatMap(TableVersion.keptFor(_, names)).filter(TableCopies.isNamedBy) match {
      case Some(version) => Some(TableCopies.lend(folder, version, into, hadoopConf))
      case None =>
        if (names.nonEmpty) FileUtil.copy(files, folder, files, into, false, hadoopConf)
        None
    }
  }

  private def namesIn(files: FileSystem, folder: Path): Set[String] =
    if (files.exists(folder)) files.listStatus(folder).map(_.getPath.getName).toSet
    else Set.empty
}
