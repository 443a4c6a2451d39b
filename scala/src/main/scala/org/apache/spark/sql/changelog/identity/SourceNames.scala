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

/**
 * Where streams come from, without what may be secret: a format, and a path, topic or table. Of a snapshot
 * it is a digest of the query that gives its rows.
 *
 * Spark gives the offsets of a checkpoint to a query's streams in their order, so that two that
 * have changed places would go on from each other's.
 */
private[changelog] object SourceNames {

  def apply(query: LogicalPlan): Seq[String] = named(query).map(_._2)

  /** The same, each with the stream itself. */
  def named(query: LogicalPlan): Seq[(LogicalPlan, String)] = streams(query).distinct

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
   * What each source is in any query, by its number in this one: where it comes from, and how it is read. Those
   * without a number can't be told from each other.
   *
   * @param begun
   *   what streams were called when the query began, by what they are called now, if that is otherwise
   */
  def byNumber(query: LogicalPlan, begun: Map[String, String] = Map.empty): Map[Int, String] =
    LowerSources(query).collectWithSubqueries {
      case source: FromChangelog if source.streaming && source.number > 0 =>
        val names = apply(source.child).map(name => begun.getOrElse(name, name))
        val read = CanonicalPlan(source).lines
        source.number -> CanonicalValue.digest((names ++ read).mkString("\n"))
    }.toMap

  /** Whether it is that of a snapshot. */
  def isSnapshot(name: String): Boolean = name.startsWith(s"${InitialSnapshotData.Name} ")

  /** The query of a snapshot and its tables. */
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
