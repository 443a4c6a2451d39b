// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Using
import scala.util.control.NonFatal

import org.apache.commons.io.IOUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import org.apache.spark.sql.changelog.errors.CheckpointErrors

/**
 * The file `changelog/plan.json` of a checkpoint.
 *
 * @param checkpoint
 *   the folder that holds the offset log
 */
private[changelog] class QueryRecordFile(checkpoint: Path, hadoopConf: Configuration) {
  private val file = new Path(new Path(checkpoint, "changelog"), "plan.json")
  private lazy val files = CheckpointFileManager.create(file.getParent, hadoopConf)

  def exists: Boolean = files.exists(file)

  /** None in the checkpoint of a query that an earlier version has begun. */
  def read(): Option[QueryRecord] =
    try
      Using.resource(files.open(file)) { stream =>
        Some(QueryRecord.fromJson(IOUtils.toString(stream, UTF_8)))
      }
    catch {
      case _: FileNotFoundException => None
      case NonFatal(e) => throw CheckpointErrors.recordDamaged(file.toString, e)
    }

  /** All of it or nothing is there afterwards. */
  def write(record: QueryRecord): Unit = {
    files.mkdirs(file.getParent)
    val stream = files.createAtomic(file, overwriteIfPossible = true)
    try {
      stream.write(record.toJson.getBytes(UTF_8))
      stream.close()
    } catch {
      case e: Throwable =>
        stream.cancel()
        throw e
    }
  }
}
