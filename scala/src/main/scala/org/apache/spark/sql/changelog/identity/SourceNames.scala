// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation

import org.apache.spark.sql.changelog.analysis.LowerSources
import org.apache.spark.sql.changelog.compat.JdbcReading
import org.apache.spark.sql.changelog.errors.Credentials
import org.apache.spark.sql.changelog.plans.FromChangelog
import org.apache.spark.sql.changelog.sources.snapshots.InitialSnapshotData
import org.apache.spark.sql.changelog.sources.tables.FollowedTables

/**
 * SourceNames: the locations of streams, without secrets. A name has a format, and a path, topic
 * or table. For a snapshot, the name has a digest of the snapshot's query.
 *
 * Spark assigns the offsets of a checkpoint to a query's streams by position. Two swapped streams
 * would continue from each other's offsets.
 */
private[changelog] object SourceNames {

  def apply(query: LogicalPlan): Seq[String] = named(query).map(_._2)

  /** Returns the names, each with its stream. */
  def named(query: LogicalPlan): Seq[(LogicalPlan, String)] = streams(query).distinct

  /**
   * Returns for each reading of a stream its position among the distinct streams. The order is
   * the order of offsets in a batch: a stream read twice has two offsets.
   */
  def readings(query: LogicalPlan): Seq[Int] = {
    val all = streams(query)
    val sources = all.distinct
    all.map(sources.indexOf(_))
  }

  private def streams(query: LogicalPlan): Seq[(LogicalPlan, String)] = query
    .collectWithSubqueries {
      case stream: StreamingRelation =>
        val format = stream.dataSource.className
        val name = InitialSnapshotData.rowsOf(stream) match {
          case Some(rows) => s"$format ${CanonicalValue.digest(read(rows).mkString("\n"))}"
          case None =>
            val table = stream.dataSource.catalogTable.map(_.identifier.unquotedString)
            nameOf(format, table, stream.dataSource.options)
        }
        stream -> name
      case stream: StreamingRelationV2 =>
        val table = stream.identifier.map(_.toString)
        stream -> nameOf(stream.sourceName, table, stream.extraOptions.asScala.toMap)
    }

  /**
   * Returns a description of each source by source number: location and way of reading.
   * Descriptions are independent of the query, and of columns added to a followed table. Sources
   * without a number are omitted.
   *
   * @param begun
   *   changed stream names: the original name by the current name
   */
  def byNumber(query: LogicalPlan, begun: Map[String, String] = Map.empty): Map[Int, String] =
    LowerSources(query).collectWithSubqueries {
      case source: FromChangelog if source.streaming && source.number > 0 =>
        val streams = apply(source.child)
        val names = streams.map(name => begun.getOrElse(name, name))
        val isTable = streams.forall(_.startsWith(s"${FollowedTables.SourceName} "))
        val read = if (isTable) CanonicalPlan.ofSource(source) else CanonicalPlan(source).lines
        source.number -> CanonicalValue.digest((names ++ read).mkString("\n"))
    }.toMap

  /** Whether a name is the name of a snapshot. */
  def isSnapshot(name: String): Boolean = name.startsWith(s"${InitialSnapshotData.Name} ")

  /** Returns the query of a snapshot and the locations of its tables. */
  private def read(rows: LogicalPlan): Seq[String] = {
    val places = rows.collectWithSubqueries { case leaf: LeafNode =>
      val options = JdbcReading.of(leaf).toSeq.flatMap(_.parameters)
      options.collect {
        case (key, value) if Database.exists(_.equalsIgnoreCase(key)) =>
          s"$key ${Credentials.removed(value)}"
      }.sorted
    }
    CanonicalPlan(rows).lines ++ places.flatten
  }

  private def nameOf(
      format: String,
      table: Option[String],
      options: Map[String, String]): String = {
    val place = options.toSeq.filter { case (key, _) => Places.exists(_.equalsIgnoreCase(key)) }
    (format +: (table.toSeq ++ place.sorted.map(_._2)).map(Credentials.removed)).mkString(" ")
  }

  private val Places = Seq("path", "subscribe", "subscribePattern", "assign", "table")

  private val Database = Seq("url", "dbtable", "query")
}
