// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.TextFile

/**
 * When a view was last compared with its query, and what came of it.
 *
 * @param rows
 *   how many were compared: those of the view or those of its query, whichever are more
 * @param differences
 *   how many rows differ; one more than are shown, if there are more
 */
case class VerificationRecord(at: Long, sample: Option[Double], rows: Long, differences: Long)

/** What is known of the rows of a generation, kept next to its checkpoint. */
class ViewLog(session: SparkSession, folder: Path) {
  private implicit val formats: Formats = Serialization.formats(NoTypeHints)
  private val verification =
    new TextFile(new Path(folder, "verification.json"), session.sessionState.newHadoopConf())

  def verified(record: VerificationRecord): Unit =
    verification.write(Serialization.write(record))

  def lastVerification: Option[VerificationRecord] =
    verification.find().map(Serialization.read[VerificationRecord](_))
}
