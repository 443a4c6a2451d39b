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
  Delta,
  DeltaCommits,
  DeltaWriter,
  RowIdentity
}
import org.apache.spark.sql.changelog.errors.SinkErrors
import org.apache.spark.sql.changelog.sinks.ChangelogBatch._
import org.apache.spark.sql.changelog.sinks.{
  ChangelogBatch,
  ChangelogSink,
  SinkInput,
  SinkOptions
}
import org.apache.spark.sql.changelog.sources.tables.NetRows

/**
 * Keeps a table current: one of Delta, Iceberg or any other source that knows `MERGE`. A Delta table with deletion
 * vectors is written without it ([[DeltaWriter]]), as far as its features allow.
 *
 * A batch is one `MERGE` else, so it becomes visible at once. Merging it again changes nothing, since
 * rows are replaced by key; Delta also notes the batch in its log and then skips it, which makes
 * rows without a key arrive once too. So there, rows that change can be kept without a key: all
 * that are the same as a row that goes are replaced by those that stay.
 */
class TableSink(options: SinkOptions) extends ChangelogSink(options.format) {
  import TableSink._

  options.refuseMistyped(Seq("provider", "createTable", "countRows"))
  private val provider = options.get("provider").getOrElse("delta")
  private val table: String = (options.get("table"), options.get("path")) match {
    case (Some(name), None) =>
      CatalystSqlParser.parseMultipartIdentifier(name).map(quoteIfNeeded).mkString(".")
    case (None, Some(path)) => s"$provider.${quoteIdentifier(path)}"
    case _ =>
      throw SinkErrors.optionMissing(format, "table", "either a table or a path is needed")
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
    DeltaCommits.lastBatch(session, table, queryId)

  override protected def hasFirstBatch(session: SparkSession, queryId: String): Boolean =
    lastBatchOf(session, queryId).contains(0L)

  override def write(batch: ChangelogBatch): Unit = {
    val session = batch.changes.sparkSession
    // a name may have ${...} in it
    session.conf.set(SQLConf.VARIABLE_SUBSTITUTE_ENABLED.key, false)
    if (!exists) create(batch)
    exists = true
    val found = key(batch.input)
    val application = DeltaCommits.application(batch.queryId, table)
    val writer = DeltaWriter.find(session, table, identityOf(batch, found), application)
    val counted = EmptyPartitions.refuse(
      changesOf(batch, found, isSpread = writer.isEmpty),
      partitions,
      table)
    // what writes them reads them more than once
    counted.persist()
    try
      if (!writer.exists(_.write(counted.select("*"), batch.batchId)) && !counted.isEmpty) {
        val note = Delta.ofBatch(application, batch.batchId)
        Delta.having(session, note)(merge(batch, found, counted))
      }
    finally counted.unpersist()
  }

  private def identityOf(batch: ChangelogBatch, key: Option[Seq[String]]): RowIdentity = {
    val columns = StructType(batch.input.columnNames.map(batch.changes.schema(_)))
    val by = key.getOrElse(if (batch.input.isInsertOnly) Nil else columns.fieldNames.toSeq)
    val exactly = by.map(name => name -> NetRows.exactly(columns(name).dataType))
    RowIdentity(columns, exactly, isKey = key.nonEmpty)
  }

  /**
   * The changes of a batch as [[DeltaWriter]] takes them, with the count in the column [[Net]].
   *
   * @param isSpread
   *   whether the rows are spread by key, as each join of a `MERGE` needs them
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
        // what comes must not meet its equals
        val types = StructType(names.map(counted.schema(_)))
        val condition = s"${RowMerge.equal(types)} AND ${RowMerge.same(types)} AND c.$Gone"
        (replacing(names, counted), condition)
    }
    new RowMerge(session, table, names)(changes, condition)
  }

  /**
   * What takes whole rows to where they should be: each row of which there are fewer, once, to
   * delete all that are the same; and each row as often as it is to be inserted.
   */
  private def replacing(names: Seq[String], net: DataFrame): DataFrame = {
    val there = net.sparkSession.table(table).withColumn(There, lit(1L))
    val isSame = names
      .map { name =>
        val exact = RowMerge.exactly(net.schema(name).dataType)
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
      NetRows
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
    // computed while what it is made of is there
    rows.localCheckpoint()
  }

  private def create(batch: ChangelogBatch): Unit = {
    val session = batch.changes.sparkSession
    // a path is not in a catalog, and Delta's answers for any
    val found =
      try session.table(table).schema.nonEmpty
      catch { case _: AnalysisException => false }
    if (!found) {
      if (!createsTable) throw SinkErrors.tableNotFound(format, table)
      // what a column of a source has where nothing is said, nobody needs here
      val columns = StructType(batch.schema.map(_.clearCurrentDefaultValue()))
      session.sql(s"CREATE TABLE IF NOT EXISTS $table (${columns.toDDL}) USING $provider")
    }
    partitions = EmptyPartitions.columnsOf(session.table(table))
  }
}

object TableSink {
  private val There = "_changelog_there"
}
