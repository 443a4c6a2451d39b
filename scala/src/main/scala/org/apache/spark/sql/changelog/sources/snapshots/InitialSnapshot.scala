// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.snapshots

import org.apache.hadoop.fs.Path
import org.json4s.JsonAST._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.types.DataTypeUtils.{fromAttributes, toAttributes}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.streaming.{Offset => AnyOffset}
import org.apache.spark.sql.execution.datasources.DataSource
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation
import org.apache.spark.sql.execution.streaming.{Offset, Source}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.plans.{FromChangelog, SourceOfPlan}
import org.apache.spark.sql.changelog.sources.tables.TableVersion

/**
 * InitialSnapshot: the rows of a table before the first change of a feed.
 *
 * {{{
 *   feed [op, id, name]   =>   Union [op, id, name, _snapshot]
 *                              :- Project [op, id, name, false]
 *                              :  +- feed
 *                              +- Project [NULL, id, name, true]
 *                                 +- rows of the snapshot, in the first batch
 * }}}
 *
 * Columns keep the ids and event times of the feed. Spark asks the feed for its offsets before
 * the snapshot. A feed that starts from its latest offset therefore misses no change.
 *
 * @param function
 *   the function that reads the feed
 * @param table
 *   the rows, as a plan without streams
 */
private[changelog] class InitialSnapshot(function: String, table: LogicalPlan, timeZone: String) {
  import InitialSnapshot._

  if (streams(table)) throw analysis("CHANGELOG_SNAPSHOT_STREAMING", "function" -> function)

  /**
   * Returns the union of a feed and the snapshot, and the column that marks snapshot rows.
   *
   * @param optional
   *   columns of the feed that the snapshot may lack, by their names in the snapshot
   * @param constants
   *   columns of the feed absent from the snapshot, with their values
   */
  def beside(
      feed: LogicalPlan,
      optional: Map[ExprId, String] = Map.empty,
      constants: Map[ExprId, Literal] = Map.empty): (LogicalPlan, Attribute) = {
    val read: Seq[(ExprId, NamedExpression)] = for {
      column <- feed.output.filterNot(column => constants.contains(column.exprId))
      found <- find(column, optional.get(column.exprId))
    } yield column.exprId -> Alias(typed(found, column), column.name)()
    val rows = source(Project(read.map(_._2), table), feed.isStreaming)
    val byId = read.map(_._1).zip(rows.output).toMap
    val columns = feed.output.map { column =>
      val value = constants
        .get(column.exprId)
        .orElse(byId.get(column.exprId))
        .getOrElse(Literal(null, column.dataType))
      Alias(value, column.name)()
    }
    val isSnapshot = Alias(Literal(false), Column)()
    val both = Union(
      Project(feed.output :+ isSnapshot, feed),
      Project(columns :+ Alias(Literal(true), Column)(), rows))
    (both, both.output.last)
  }

  private def find(column: Attribute, optional: Option[String]): Option[Attribute] = {
    val name = optional.getOrElse(column.name)
    val found = table.output.filter(other => SQLConf.get.resolver(other.name, name))
    if (found.size != 1 && optional.isEmpty) {
      throw analysis(
        "CHANGELOG_SNAPSHOT_COLUMN_MISSING",
        "function" -> function,
        "column" -> name,
        "columns" -> table.output.map(_.name))
    }
    found.headOption.filter(_ => found.size == 1)
  }

  /** Converts a value as an INSERT into the column would. */
  private def typed(found: Attribute, column: Attribute): Expression =
    if (DataType.equalsStructurally(found.dataType, column.dataType, ignoreNullability = true)) {
      found
    } else if (Cast.canANSIStoreAssign(found.dataType, column.dataType)) {
      Cast(found, column.dataType.asNullable, Some(timeZone), EvalMode.ANSI)
    } else {
      throw analysis(
        "CHANGELOG_SNAPSHOT_COLUMN_TYPE",
        "function" -> function,
        "column" -> found.name,
        "found" -> found.dataType.sql,
        "expected" -> column.dataType.sql)
    }

  private def source(rows: Project, streaming: Boolean): LogicalPlan =
    if (!streaming) rows
    else {
      rows.foreach {
        case _: CTERelationRef =>
          throw ChangelogErrors.argumentInvalid(
            function,
            "snapshot",
            "a common table expression",
            "the first batch reads the snapshot separately: write the query in the argument, as " +
              "in snapshot => TABLE(SELECT ...), or create a view")
        case _ =>
      }
      val data = new InitialSnapshotData(SparkSession.active, rows)
      StreamingRelation(
        data,
        s"${InitialSnapshotProvider.Name} $name",
        toAttributes(data.columns))
    }

  /** Returns the name of the table, or a placeholder. */
  private def name: String = table match {
    case alias: SubqueryAlias if !alias.alias.startsWith("_") => alias.alias
    case _ => "of a query"
  }
}

private object InitialSnapshot {
  private val Column = "_snapshot"

  private def streams(plan: LogicalPlan): Boolean = plan
    .collectWithSubqueries {
      case source: FromChangelog => source.streaming
      case leaf: LeafNode => leaf.isStreaming
    }
    .contains(true)
}

/**
 * The data source of a snapshot, which creates the source when a query starts.
 *
 * @param rows
 *   the snapshot, as a plan without streams
 */
private[changelog] class InitialSnapshotData(session: SparkSession, val rows: LogicalPlan)
    extends DataSource(session, InitialSnapshotProvider.Name)
    with SourceOfPlan {

  /** The columns of the stream. */
  val columns: StructType = fromAttributes(rows.output).asNullable

  override def createSource(metadataPath: String): Source =
    new InitialSnapshotSource(session, rows, columns, new Path(metadataPath))

  override def equals(other: Any): Boolean = other match {
    case data: InitialSnapshotData => rows.sameResult(data.rows)
    case _ => false
  }

  override def hashCode: Int = rows.semanticHash()
}

private[changelog] object InitialSnapshotData {

  /** The name of the stream's format. */
  val Name: String = InitialSnapshotProvider.Name

  /** Returns the rows of the snapshot, if a stream reads a snapshot. */
  def rowsOf(stream: LogicalPlan): Option[LogicalPlan] = stream match {
    case relation: StreamingRelation =>
      relation.dataSource match {
        case data: InitialSnapshotData => Some(data.rows)
        case _ => None
      }
    case _ => None
  }

  /**
   * Whether the rows of a snapshot's offset are a copy, which exists for the first batch only.
   */
  def isCopied(offset: String): Boolean = SnapshotOffset.parse(offset).copy.nonEmpty
}

/**
 * SnapshotOffset: the single offset of a snapshot's stream, which pins the snapshot.
 *
 * @param copy
 *   the name of the copy, if any
 * @param tables
 *   the versions of the tables, without a copy
 */
private[snapshots] final case class SnapshotOffset(
    copy: Option[String],
    tables: Seq[TableVersion])
    extends Offset {
  override val json: String =
    JsonMethods.compact(("copy" -> copy) ~ ("tables" -> tables.map(_.json)))
}

private[snapshots] object SnapshotOffset {

  /** Converts an offset from Spark. An offset from the log is JSON. */
  def of(offset: AnyOffset): SnapshotOffset = offset match {
    case moment: SnapshotOffset => moment
    case other => SnapshotOffset.parse(other.json)
  }

  def parse(json: String): SnapshotOffset = {
    val read = JsonMethods.parse(json)
    val copy = Some(read \ "copy").collect { case JString(name) => name }
    val tables = (read \ "tables") match {
      case JArray(versions) =>
        versions.collect { case JString(version) => TableVersion.parse(version) }
      case _ => Nil
    }
    SnapshotOffset(copy, tables)
  }
}
