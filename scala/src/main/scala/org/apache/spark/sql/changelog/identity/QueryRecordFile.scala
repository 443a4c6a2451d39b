// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.errors.CheckpointErrors

/**
 * The file `changelog/plan.json` of a checkpoint, and a mark beside its offsets that there must be one.
 *
 * A query that begins again has offsets, whatever else of its checkpoint got lost.
 *
 * @param checkpoint
 *   the folder that holds the offset log
 */
private[changelog] class QueryRecordFile(checkpoint: Path, hadoopConf: Configuration) {
  private val path = new Path(new Path(checkpoint, "changelog"), "plan.json")
  private val markPath = new Path(new Path(checkpoint, "offsets"), ".changelog")
  private val file = new TextFile(path, hadoopConf)
  private val mark = new TextFile(markPath, hadoopConf)

  def exists: Boolean = file.exists

  /** Whether it would be missed. */
  def isMarked: Boolean = mark.exists

  /** None in the checkpoint of a query that an earlier version has begun. */
  def read(): Option[QueryRecord] = {
    val record =
      try file.find().map(QueryRecord.fromJson)
      catch { case NonFatal(e) => throw CheckpointErrors.recordDamaged(path.toString, e) }
    if (record.isEmpty && isMarked) {
      throw CheckpointErrors.recordMissing(path.toString, markPath.toString)
    }
    record
  }

  def write(record: QueryRecord): Unit = {
    file.write(record.toJson)
    if (!isMarked)
      mark.write("This checkpoint has a record of its query in changelog/plan.json\n")
  }
}
