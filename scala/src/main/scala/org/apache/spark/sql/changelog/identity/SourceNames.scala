// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation

/**
 * Where streams come from, without what may be secret: a format, and a path, topic or table.
 *
 * Spark gives the offsets of a checkpoint to a query's streams in their order, so that two that
 * have changed places would go on from each other's.
 */
private[identity] object SourceNames {

  def apply(query: LogicalPlan): Seq[String] = query
    .collectWithSubqueries {
      case stream: StreamingRelation =>
        stream -> nameOf(
          stream.dataSource.className,
          stream.dataSource.catalogTable.map(_.identifier.unquotedString),
          stream.dataSource.options)
      case stream: StreamingRelationV2 =>
        val table = stream.identifier.map(_.toString)
        stream -> nameOf(stream.sourceName, table, stream.extraOptions.asScala.toMap)
    }
    .distinct
    .map(_._2)

  private def nameOf(
      format: String,
      table: Option[String],
      options: Map[String, String]): String = {
    val place = options.toSeq.filter { case (key, _) => Places.exists(_.equalsIgnoreCase(key)) }
    // an address may name a user and a password
    val names = (table.toSeq ++ place.sorted.map(_._2)).map(_.replaceAll("//[^/@]*@", "//"))
    (format +: names).mkString(" ")
  }

  private val Places = Seq("path", "subscribe", "subscribePattern", "assign", "table")
}
