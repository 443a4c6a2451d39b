// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.errors.CheckpointErrors

/**
 * The file `changelog/plan.json` of a checkpoint. It is written when the first batch is planned.
 *
 * @param checkpoint
 *   the folder that holds the offset log
 */
private[changelog] class QueryRecordFile(checkpoint: Path, hadoopConf: Configuration) {
  private val path = new Path(new Path(checkpoint, "changelog"), "plan.json")
  private val file = new TextFile(path, hadoopConf)

  def exists: Boolean = file.exists

  /** Fails if the file is missing or damaged. */
  def read(): QueryRecord = {
    val record =
      try file.find().map(QueryRecord.fromJson)
      catch { case NonFatal(e) => throw CheckpointErrors.recordDamaged(path.toString, e) }
    record.getOrElse(throw CheckpointErrors.recordMissing(path.toString))
  }

  def write(record: QueryRecord): Unit = file.write(record.toJson)
}
