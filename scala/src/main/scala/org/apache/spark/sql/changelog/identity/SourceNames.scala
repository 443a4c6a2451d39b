// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation

import org.apache.spark.sql.changelog.analysis.LowerSources
import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * Where streams come from, without what may be secret: a format, and a path, topic or table.
 *
 * Spark gives the offsets of a checkpoint to a query's streams in their order, so that two that
 * have changed places would go on from each other's.
 */
private[changelog] object SourceNames {

  def apply(query: LogicalPlan): Seq[String] = streams(query).distinct.map(_._2)

  /**
   * Which of them each reading of a stream reads, in the order in which Spark writes down offsets: one that
   * is read twice has two there.
   */
  def readings(query: LogicalPlan): Seq[Int] = {
    val all = streams(query)
    val sources = all.distinct
    all.map(sources.indexOf(_))
  }

  private def streams(query: LogicalPlan): Seq[(LogicalPlan, String)] = query
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

  /**
   * What each source is in any query, by its number in this one: where it comes from, and how it is read. Those
   * without a number can't be told from each other.
   */
  def byNumber(query: LogicalPlan): Map[Int, String] = LowerSources(query).collectWithSubqueries {
    case source: FromChangelog if source.streaming && source.number > 0 =>
      val read = CanonicalPlan(source).lines
      source.number -> CanonicalValue.digest((apply(source.child) ++ read).mkString("\n"))
  }.toMap

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
