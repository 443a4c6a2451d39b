// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{FSDataOutputStream, Path}
import org.apache.hadoop.util.Progressable

/** The local file system, for tests that have something happen when a file is written. */
abstract class WatchedFileSystem extends QuickFileSystem {

  /** Called before a file is created, which does not happen if this fails. */
  protected def beforeCreate(path: Path): Unit

  override def create(
      path: Path,
      permission: FsPermission,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable): FSDataOutputStream = {
    beforeCreate(path)
    super.create(path, permission, overwrite, bufferSize, replication, blockSize, progress)
  }
}
