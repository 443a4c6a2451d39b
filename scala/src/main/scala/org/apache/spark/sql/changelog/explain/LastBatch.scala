// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import scala.jdk.CollectionConverters._

import org.json4s.JsonAST._
import org.json4s.JsonDSL._

import org.apache.spark.sql.changelog.status.RunningQuery

/** Tells of a running query and the batch it did last. */
private[explain] case class LastBatch(query: RunningQuery) {
  private val durations = query.progress
    .map(_.durationMs.asScala.toSeq.map { case (phase, ms) => phase -> ms.longValue })
    .getOrElse(Nil)
    .sortBy(-_._2)

  /** How long parts of the batch took, what takes longest first; the first is all of it. */
  private def phases: String =
    durations.filter(_._2 > 0).map { case (phase, ms) => s"$phase $ms ms" }.mkString(", ")

  def lines: Seq[String] = Seq(
    s"Query ${query.title}, run ${query.runId}${if (query.isActive) "" else ", has ended"}",
    query.progress.fold("No batch is done yet.") { batch =>
      f"Batch ${batch.batchId} of ${batch.timestamp}: ${batch.numInputRows}%,d rows read; $phases"
    },
    s"${query.compiled} classes compiled by the driver since the run began")

  def toJson: JObject =
    ("name" -> query.name) ~ ("id" -> query.id) ~ ("runId" -> query.runId) ~
      ("active" -> query.isActive) ~
      ("batchId" -> query.progress.map(_.batchId)) ~
      ("timestamp" -> query.progress.map(_.timestamp)) ~
      ("rowsRead" -> query.progress.map(_.numInputRows)) ~
      ("durationMs" -> JObject(durations.toList.map { case (phase, ms) => phase -> JInt(ms) })) ~
      ("compiledClasses" -> query.compiled)
}
