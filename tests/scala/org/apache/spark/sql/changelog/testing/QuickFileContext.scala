// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.net.URI

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{DelegateToFileSystem, FileStatus, Path, RawLocalFileSystem}

/**
 * The local file system for those that rename files by a `FileContext`, as Delta does with its log.
 *
 * Hadoop starts a `chmod` and four `readlink` processes for each file there; this one starts none.
 */
class QuickFileContext(uri: URI, conf: Configuration)
    extends DelegateToFileSystem(uri, new QuickFileContext.Raw, conf, "file", false) {
  override def getUriDefaultPort: Int = -1
}

object QuickFileContext {
  private class Raw extends RawLocalFileSystem {
    override def setPermission(path: Path, permission: FsPermission): Unit = ()

    /** Tests make no links. */
    override def getFileLinkStatus(path: Path): FileStatus = getFileStatus(path)
  }

  /** Makes sessions use it. */
  val conf: Map[String, String] =
    Map("spark.hadoop.fs.AbstractFileSystem.file.impl" -> classOf[QuickFileContext].getName)
}
