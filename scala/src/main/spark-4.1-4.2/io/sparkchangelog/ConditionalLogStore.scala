// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package io.sparkchangelog

import java.lang.{Boolean => JavaBoolean}
import java.nio.file.FileAlreadyExistsException
import java.util.Iterator

import scala.jdk.CollectionConverters._

import io.delta.storage.HadoopFileSystemLogStore
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.changelog.checkpoint.TextFile

/**
 * ConditionalLogStore: commits to Delta tables on S3 from several processes. The store creates the file of a version on
 * the condition that the file is absent. Delta's own store for S3 only orders the commits of one process.
 *
 * To use the log store, set `spark.delta.logStore.s3a.impl=io.sparkchangelog.ConditionalLogStore`.
 */
class ConditionalLogStore(hadoopConf: Configuration)
    extends HadoopFileSystemLogStore(hadoopConf) {

  override def write(
      path: Path,
      actions: Iterator[String],
      overwrite: JavaBoolean,
      hadoopConf: Configuration): Unit = {
    val file = new TextFile(path, hadoopConf)
    val text = actions.asScala.map(_ + "\n").mkString
    if (overwrite) file.write(text)
    else if (!file.create(text)) throw new FileAlreadyExistsException(path.toString)
  }

  override def isPartialWriteVisible(path: Path, hadoopConf: Configuration): JavaBoolean = false
}
