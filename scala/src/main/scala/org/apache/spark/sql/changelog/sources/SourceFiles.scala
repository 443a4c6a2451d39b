// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.changelog.sources.snapshots.SnapshotSource
import org.apache.spark.sql.changelog.sources.tables.TableVersion

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
    val names =
      if (files.exists(folder)) files.listStatus(folder).map(_.getPath.getName).toSet
      else Set.empty[String]
    val needed = TableVersion.keptFor(offset, names).orElse(SnapshotSource.keptFor(offset, names))
    needed.filterNot(names).map(new Path(folder, _))
  }
}
