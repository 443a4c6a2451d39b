// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Cast, Literal}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.types.DataTypeUtils.{fromAttributes, toAttributes}
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.connector.read.streaming.{
  Offset => AnyOffset, ReadLimit, SparkDataStream
}
import org.apache.spark.sql.execution.streaming.{Offset, Source}
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.sql.{AnalysisException, DataFrame => AnyDataFrame}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.sources.{LatestOffsetProvider, LatestOffsetSource}

/**
 * TableSource: streams the changes of a table between versions. The first batch has all rows.
 *
 * A query over the available data chooses the versions of its tables before the first read.
 */
private[tables] class TableSource(
    session: SparkSession,
    table: FollowedTable,
    override val schema: StructType)
    extends LatestOffsetSource {

  /** The snapshot to read up to, if chosen at the start. */
  private var decided: Option[table.TableSnapshot] = None

  override def prepareForTriggerAvailableNow(): Unit = decided = Some(table.now())

  override def latestOffset(start: AnyOffset, limit: ReadLimit): AnyOffset = {
    val from = Option(start).map(versionOf)
    try table.version(from, decided.getOrElse(table.now()))
    catch {
      // Another process may have refreshed this view since the shared snapshot.
      case _: AnalysisException if SharedVersions.forget(session, table.name) =>
        val now = table.now()
        decided = decided.map(_ => now)
        table.version(from, now)
    }
  }

  override def deserializeOffset(json: String): AnyOffset = TableVersion.parse(json)

  override def getBatch(start: Option[Offset], end: Offset): AnyDataFrame = {
    val from = start.map(versionOf)
    val until = versionOf(end)
    Dataset.ofRows(session, TableRows(toAttributes(schema), () => read(from, until)))
  }

  override def commit(end: Offset): Unit = table.forget(versionOf(end))

  override def stop(): Unit = ()

  override def toString: String = s"table ${table.name}"

  private def read(from: Option[TableVersion], until: TableVersion): LogicalPlan = from match {
    case Some(from) => table.changes(from, until)
    case None if table.tracksOnlyInserts => table.rows(until)
    case None =>
      val rows = table.rows(until)
      val insert = Alias(Literal("insert"), RowKind.ChangeTypeColumnName)()
      Project(rows.output :+ insert, rows)
  }

  private def versionOf(offset: AnyOffset): TableVersion = offset match {
    case version: TableVersion => version
    case other => TableVersion.parse(other.json)
  }
}

/**
 * TableSourceProvider: the streaming source `changelog-table-changes`, by which views follow tables. The source has two
 * options:
 *   - `table`: the table's name.
 *   - `by`: `copy` to compare all rows with a copy, `changes` to read the changes from the catalog, or `snapshots` to
 *     compare snapshots of an Iceberg table. By default, the table's format decides.
 */
class TableSourceProvider extends LatestOffsetProvider(FollowedTables.SourceName) {

  override protected def schemaOf(
      session: SparkSession,
      options: Map[String, String]): StructType =
    schemaOf(session, FollowedTables.open(session, options, new Path("none")))

  override protected def source(
      session: SparkSession,
      options: Map[String, String],
      folder: Path): Source = {
    val table = FollowedTables.open(session, options, folder)
    new TableSource(session, table, schemaOf(session, table))
  }

  private def schemaOf(session: SparkSession, table: FollowedTable): StructType = {
    val columns = fromAttributes(FollowedTables.lookUp(session, table.name).output)
    if (table.tracksOnlyInserts) columns
    else columns.add(RowKind.ChangeTypeColumnName, StringType, nullable = false)
  }
}

/**
 * TableRows: a batch of a table's rows, read when the batch is optimized. Spark also asks a source for batches that
 * never run. After optimization, unused columns are not read.
 *
 * @param read
 *   returns the rows as a batch plan
 */
case class TableRows(
    override val output: Seq[Attribute],
    read: () => LogicalPlan,
    stream: Option[SparkDataStream] = None)
    extends LeafNode
    with StreamSourceAwareLogicalPlan {

  override def isStreaming: Boolean = true

  override def withStream(stream: SparkDataStream): TableRows = copy(stream = Some(stream))

  override def getStream: Option[SparkDataStream] = stream

  override def computeStats(): Statistics = Statistics(conf.defaultSizeInBytes)

  override def simpleString(maxFields: Int): String =
    s"TableRows ${output.mkString("[", ", ", "]")}"

  /** Returns the rows as a batch plan. */
  def asBatchPlan: LogicalPlan = {
    val rows = stream.foldLeft(read()) { (plan, stream) =>
      plan.transformUp { case leaf: StreamSourceAwareLogicalPlan => leaf.withStream(stream) }
    }
    Project(
      output.zip(rows.output).map { case (column, found) =>
        // The comments of nested fields may have changed. Compared rows may have lost NOT NULL of nested fields, and
        // Spark has no cast that adds it.
        val wanted = column.dataType.asNullable
        val value = if (found.dataType.asNullable == wanted) found else Cast(found, wanted)
        Alias(value, column.name)(exprId = column.exprId)
      },
      rows)
  }
}

/**
 * ReadTableRows: replaces [[TableRows]] by the rows of the batch, before optimization, and before sources move into
 * subqueries.
 */
object ReadTableRows extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.isInstanceOf[TableRows])) plan
    else plan.transformUp { case rows: TableRows => rows.asBatchPlan }
}
