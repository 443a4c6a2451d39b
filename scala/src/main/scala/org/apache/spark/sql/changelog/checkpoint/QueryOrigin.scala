// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s.JsonAST._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{parse, pretty, render}

/**
 * A query of whose checkpoint that of another one was made, by a fork or for a changed query.
 *
 * @param queryId
 *   as sinks know it
 * @param batch
 *   the last one of it that a target of the other query may hold; none if that begins with an empty target
 */
final case class QueryOrigin(queryId: String, batch: Option[Long])

/** The file `changelog/forked-from.json` of a checkpoint: all queries it goes back to, the nearest first. */
object QueryOrigin {

  /** Where it lies in the checkpoint. */
  val Place = "changelog/forked-from.json"

  def read(checkpoint: Path, hadoopConf: Configuration): Seq[QueryOrigin] =
    file(checkpoint, hadoopConf).find().toSeq.flatMap { text =>
      for {
        JArray(queries) <- Seq(parse(text))
        JObject(fields) <- queries
        JField("queryId", JString(queryId)) <- fields
        batch = fields.collectFirst { case JField("batch", JInt(batch)) => batch.toLong }
      } yield QueryOrigin(queryId, batch)
    }

  def write(checkpoint: Path, hadoopConf: Configuration, queries: Seq[QueryOrigin]): Unit = {
    val json = queries.map(query => ("queryId" -> query.queryId) ~ ("batch" -> query.batch))
    file(checkpoint, hadoopConf).write(pretty(render(JArray(json.toList))))
  }

  private def file(checkpoint: Path, hadoopConf: Configuration): TextFile =
    new TextFile(new Path(checkpoint, Place), hadoopConf)
}
