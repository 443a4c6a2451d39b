// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.RowOrdering
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.util.{quoteIdentifier, quoteIfNeeded}
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.connectors.delta.{
  Delta, DeltaCommits, DeltaRelease, DeltaWriter, RowIdentity
}
import org.apache.spark.sql.changelog.connectors.iceberg.IcebergCommits
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.sinks.ChangelogBatch._
import org.apache.spark.sql.changelog.sinks.{
  ChangelogBatch, ChangelogSink, ChangelogSinkProvider, SinkInput, SinkOptions
}
import org.apache.spark.sql.changelog.sources.tables.RowDelta

/**
 * Keeps a table current: a table of Delta, Iceberg or another source that supports `MERGE`. For a Delta table with
 * deletion vectors, [[DeltaWriter]] writes without `MERGE` if the table's features permit.
 *
 * Otherwise a batch is one `MERGE` and becomes visible atomically. Repeating the `MERGE` has no effect, because rows
 * are replaced by key. Delta also records the batch in its log and skips a repeated batch. For an Iceberg table, the
 * sink records the batch in the snapshot, and skips a repeated batch. Rows without a key therefore arrive exactly once
 * too. There, even changing rows need no key: the remaining copies replace every row equal to a deleted row.
 */
class TableSink(options: SinkOptions) extends ChangelogSink(options.format) {
  import TableSink._

  options.refuseMistyped(Seq("provider", "createTable", "countRows"))
  private val provider = options.get("provider").getOrElse("delta")
  if (provider.equalsIgnoreCase("delta") && options.get("path").nonEmpty) {
    DeltaRelease.require(s"The path ${options.get("path").get} of the sink $format")
  }
  private val table: String = (options.get("table"), options.get("path")) match {
    case (Some(name), None) =>
      CatalystSqlParser.parseMultipartIdentifier(name).map(quoteIfNeeded).mkString(".")
    case (None, Some(path)) => s"$provider.${quoteIdentifier(path)}"
    case _ =>
      throw options.invalid("table", "either a table or a path is needed")
  }
  private val createsTable = options.boolean("createTable", default = false)
  private val countsRows = options.boolean("countRows", default = false)
  @volatile private var exists = false
  @volatile private var partitions: Seq[String] = Nil

  override protected def check(input: SinkInput): Unit = {
    val found = key(input)
    if (!input.isInsertOnly) input.checkComparable(found, RowOrdering.isOrderable)
  }

  private def key(input: SinkInput): Option[Seq[String]] =
    if (countsRows) input.keyOrNone(options.key) else input.key(options.key)

  override protected def targetName: String = table

  override protected def lastBatchOf(session: SparkSession, queryId: String): Option[Long] =
    DeltaCommits
      .lastBatch(session, table, queryId)
      .orElse(IcebergCommits.lastBatch(session, table, queryId))

  override protected def hasFirstBatch(session: SparkSession, queryId: String): Boolean =
    lastBatchOf(session, queryId).contains(0L)

  override def write(batch: ChangelogBatch): Unit = {
    val session = batch.changes.sparkSession
    // A name may contain ${...}.
    session.conf.set(SQLConf.VARIABLE_SUBSTITUTE_ENABLED.key, false)
    // Only the first batch of a run can be in the table already. Delta itself skips such a batch.
    val isWritten = !exists && {
      create(batch)
      IcebergCommits.lastBatch(session, table, batch.queryId).exists(_ >= batch.batchId)
    }
    exists = true
    if (!isWritten) writeNew(session, batch)
  }

  private def writeNew(session: SparkSession, batch: ChangelogBatch): Unit = {
    val found = key(batch.input)
    val application = DeltaCommits.application(batch.queryId, table)
    val writer = DeltaWriter.find(session, table, identityOf(batch, found), application)
    val counted = EmptyPartitions.refuse(
      changesOf(batch, found, isSpread = writer.isEmpty),
      partitions,
      table)
    try {
      val isWritten = writer.exists { writer =>
        // Adaptive execution would run a job per stage, although the changes and the table's log are small.
        Delta.having(session, Map(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false")) {
          // A statement may read the changes again.
          writer.write(counted.persist().select("*"), batch.batchId)
        }
      }
      if (writer.isEmpty) counted.persist()
      if (!isWritten && !counted.isEmpty) {
        val note = Delta.ofBatch(application, batch.batchId) ++
          IcebergCommits.ofBatch(batch.queryId, batch.batchId)
        Delta.having(session, note)(merge(batch, found, counted))
      }
    } finally counted.unpersist()
  }

  private def identityOf(batch: ChangelogBatch, key: Option[Seq[String]]): RowIdentity = {
    val columns = StructType(batch.input.columnNames.map(batch.changes.schema(_)))
    val by = key.getOrElse(if (batch.input.isInsertOnly) Nil else columns.fieldNames.toSeq)
    RowMerge.identity(columns, by, isKey = key.nonEmpty)
  }

  /**
   * Returns the changes of a batch in the form of [[DeltaWriter]], with the count in the column [[Net]].
   *
   * @param isSpread
   *   whether rows are shuffled by key, as the joins of a `MERGE` require
   */
  private def changesOf(
      batch: ChangelogBatch,
      key: Option[Seq[String]],
      isSpread: Boolean): DataFrame = key match {
    case Some(key) =>
      val count = batch.changes.sparkSession.sessionState.conf.numShufflePartitions
      val sign = when(col(Gone), lit(-1L)).otherwise(lit(1L))
      batch
        .newestByKey(key, Option.when(isSpread)(count))
        .select(col(s"$Newest.*"), sign.as(Net))
    case None if batch.input.isInsertOnly =>
      batch.inserted(Some(1)).withColumn(Net, lit(1L))
    case None => batch.netRows
  }

  private def merge(batch: ChangelogBatch, key: Option[Seq[String]], counted: DataFrame): Unit = {
    val session = batch.changes.sparkSession
    val names = batch.input.columnNames
    def rows = counted.select((col(Net) < 0).as(Gone) +: ChangelogBatch.columns(names): _*)
    val (changes, condition) = key match {
      case Some(key) => (rows, RowMerge.equal(StructType(key.map(counted.schema(_)))))
      case None if batch.input.isInsertOnly => (rows, "false")
      case None =>
        // Inserted rows must not match equal rows of the table.
        val types = StructType(names.map(counted.schema(_)))
        val condition = s"${RowMerge.equal(types)} AND ${RowMerge.same(types)} AND c.$Gone"
        (replacing(names, counted), condition)
    }
    new RowMerge(session, table, names)(changes, condition)
  }

  /**
   * Returns the steps that correct the counts of rows. A row with a smaller count appears once,
   * to delete every copy. A row also appears for each copy to insert.
   */
  private def replacing(names: Seq[String], net: DataFrame): DataFrame = {
    val there = net.sparkSession.table(table).withColumn(There, lit(1L))
    val isSame = names
      .map { name =>
        val exact = RowMerge.identityType(net.schema(name).dataType)
        col(RowMerge.column("f", name)).cast(exact) <=> col(RowMerge.column("t", name)).cast(
          exact)
      }
      .reduce(_ && _)
    val fewerNames = names :+ Net
    val fewerColumns = fewerNames.map(name => col(RowMerge.column("f", name)).as(name))
    val met = net
      .where(col(Net) < 0)
      .as("f")
      .join(there.as("t"), isSame, "left")
      .select(fewerColumns :+ coalesce(col(s"t.$There"), lit(0L)).as(There): _*)
    val fewer =
      RowDelta
        .summed(met, fewerNames, There)
        .select(
          ChangelogBatch.columns(names) :+ greatest(col(There) + col(Net), lit(0L))
            .as(There) :+ lit(true).as(Gone): _*)
    val more = net
      .where(col(Net) > 0)
      .select(ChangelogBatch.columns(names) :+ col(Net).as(There) :+ lit(false).as(Gone): _*)
    val steps = concat(
      when(col(Gone), array(lit(true))).otherwise(typedLit(Seq.empty[Boolean])),
      array_repeat(lit(false), col(There).cast("INT")))
    val rows =
      fewer.union(more).select(explode(steps).as(Gone) +: ChangelogBatch.columns(names): _*)
    // Computed before the target changes.
    rows.localCheckpoint()
  }

  private def create(batch: ChangelogBatch): Unit = {
    val session = batch.changes.sparkSession
    // A path is not in a catalog, and Delta's catalog accepts every path.
    val found =
      try Some(session.table(table)).filter(_.schema.nonEmpty)
      catch { case _: AnalysisException => None }
    if (found.isEmpty) {
      if (!createsTable)
        throw analysis("CHANGELOG_SINK_TABLE_NOT_FOUND", "sink" -> format, "table" -> table)
      // Default values of a source's columns do not apply to the target.
      val columns = StructType(batch.schema.map(_.clearCurrentDefaultValue()))
      session.sql(s"CREATE TABLE IF NOT EXISTS $table (${columns.toDDL}) USING $provider")
    }
    partitions = EmptyPartitions.columnsOf(found.getOrElse(session.table(table)))
  }
}

object TableSink {
  private val There = "_changelog_there"
}

/** `writeStream.format("changelog-table")`: keeps a table current that supports MERGE. */
class TableSinkProvider extends ChangelogSinkProvider("changelog-table") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new TableSink(options)
}
