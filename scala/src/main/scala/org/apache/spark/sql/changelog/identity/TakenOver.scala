// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s.JsonAST._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{parse, pretty, render}

import org.apache.spark.sql.changelog.checkpoint.TextFile

/**
 * What a query takes over from an earlier one, whose checkpoint its own was made of:
 * `changelog/taken-over.json`.
 *
 * @param batch
 *   the one in which it begins
 * @param parts
 *   the fingerprints of those whose state was that of the earlier query
 * @param hasResult
 *   whether the rows that the target holds lie beside, so that the first batch takes back what is
 *   not part of the new result
 */
private[changelog] final case class TakenOver(
    batch: Long,
    parts: Set[String],
    hasResult: Boolean) {

  def toJson: String = pretty(
    render(("batch" -> batch) ~ ("parts" -> parts.toSeq.sorted) ~ ("hasResult" -> hasResult)))
}

private[changelog] object TakenOver {

  /** The folder of the rows that the target holds. */
  def resultIn(checkpoint: Path): Path = new Path(new Path(checkpoint, "changelog"), "result")

  def file(checkpoint: Path, hadoopConf: Configuration): TextFile =
    new TextFile(new Path(new Path(checkpoint, "changelog"), "taken-over.json"), hadoopConf)

  def fromJson(text: String): TakenOver = {
    val json = parse(text)
    val JInt(batch) = json \ "batch": @unchecked
    val JArray(parts) = json \ "parts": @unchecked
    val JBool(hasResult) = json \ "hasResult": @unchecked
    TakenOver(batch.toLong, parts.collect { case JString(part) => part }.toSet, hasResult)
  }
}
