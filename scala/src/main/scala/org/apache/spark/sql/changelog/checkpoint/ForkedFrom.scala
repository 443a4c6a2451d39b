// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s.JsonAST._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{parse, pretty, render}

/**
 * A query as whose batch another one began, that was forked from it.
 *
 * @param queryId
 *   as sinks know it
 * @param batch
 *   the last one that both have in common
 */
final case class ForkedFrom(queryId: String, batch: Long)

/** The file `changelog/forked-from.json` of a checkpoint: all queries it goes back to, the nearest first. */
object ForkedFrom {

  /** Where it lies in the checkpoint. */
  val Place = "changelog/forked-from.json"

  def read(checkpoint: Path, hadoopConf: Configuration): Seq[ForkedFrom] =
    file(checkpoint, hadoopConf).find().toSeq.flatMap { text =>
      for {
        JArray(queries) <- Seq(parse(text))
        JObject(fields) <- queries
        JField("queryId", JString(queryId)) <- fields
        JField("batch", JInt(batch)) <- fields
      } yield ForkedFrom(queryId, batch.toLong)
    }

  def write(checkpoint: Path, hadoopConf: Configuration, queries: Seq[ForkedFrom]): Unit = {
    val json = queries.map(query => ("queryId" -> query.queryId) ~ ("batch" -> query.batch))
    file(checkpoint, hadoopConf).write(pretty(render(JArray(json.toList))))
  }

  private def file(checkpoint: Path, hadoopConf: Configuration): TextFile =
    new TextFile(new Path(checkpoint, Place), hadoopConf)
}
