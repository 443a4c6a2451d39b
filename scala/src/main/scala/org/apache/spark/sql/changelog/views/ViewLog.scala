// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.Path
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/**
 * When a view was last brought up to date, or started.
 *
 * @param asOf
 *   all that had been delivered by then is in the view, in milliseconds
 * @param how
 *   `incremental` or `full`; `started`, if it ran until it was stopped
 */
case class RefreshRecord(asOf: Long, finished: Long, how: String, inputRows: Long)

/**
 * When a view was last compared with its query, and what came of it.
 *
 * @param rows
 *   how many were compared: those of the view or those of its query, whichever are more
 * @param differences
 *   how many rows differ; one more than are shown, if there are more
 */
case class VerificationRecord(at: Long, sample: Option[Double], rows: Long, differences: Long)

/** What happened to a view, kept next to its checkpoint. */
class ViewLog(session: SparkSession, folder: Path) {
  private implicit val formats: Formats = Serialization.formats(NoTypeHints)
  private lazy val files =
    CheckpointFileManager.create(folder, session.sessionState.newHadoopConf())

  def refreshed(record: RefreshRecord): Unit = write("refresh.json", Serialization.write(record))

  def lastRefresh: Option[RefreshRecord] =
    read("refresh.json").map(Serialization.read[RefreshRecord](_))

  def verified(record: VerificationRecord): Unit =
    write("verification.json", Serialization.write(record))

  def lastVerification: Option[VerificationRecord] =
    read("verification.json").map(Serialization.read[VerificationRecord](_))

  private def write(name: String, json: String): Unit = {
    val out = files.createAtomic(new Path(folder, name), overwriteIfPossible = true)
    try out.write(json.getBytes(UTF_8))
    catch {
      case error: Throwable =>
        out.cancel()
        throw error
    }
    out.close()
  }

  private def read(name: String): Option[String] = {
    val path = new Path(folder, name)
    if (!files.exists(path)) None
    else {
      val in = files.open(path)
      try Some(new String(in.readAllBytes(), UTF_8))
      finally in.close()
    }
  }
}
