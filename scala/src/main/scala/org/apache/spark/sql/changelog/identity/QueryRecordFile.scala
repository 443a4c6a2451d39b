// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.errors.CheckpointErrors

/**
 * The file `changelog/plan.json` of a checkpoint.
 *
 * @param checkpoint
 *   the folder that holds the offset log
 */
private[changelog] class QueryRecordFile(checkpoint: Path, hadoopConf: Configuration) {
  private val path = new Path(new Path(checkpoint, "changelog"), "plan.json")
  private val file = new TextFile(path, hadoopConf)

  def exists: Boolean = file.exists

  /** None in the checkpoint of a query that an earlier version has begun. */
  def read(): Option[QueryRecord] =
    try file.find().map(QueryRecord.fromJson)
    catch { case NonFatal(e) => throw CheckpointErrors.recordDamaged(path.toString, e) }

  def write(record: QueryRecord): Unit = file.write(record.toJson)
}
