// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.RowOrdering
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.util.{quoteIdentifier, quoteIfNeeded}
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.connectors.delta.{Delta, DeltaCommits}
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
 * Keeps a table current by `MERGE`: one of Delta, Iceberg or any other source with row-level
 * operations.
 *
 * A batch is one `MERGE`, so it becomes visible at once. Merging it again changes nothing, since
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
    if (!exists) create(batch)
    exists = true
    val names = batch.input.columnNames
    val (changes, condition) = key(batch.input) match {
      case Some(key) =>
        // each join of the MERGE wants its rows spread by key
        val count = session.sessionState.conf.numShufflePartitions
        val rows = batch.newestByKey(key, Some(count)).select(Gone, s"$Newest.*")
        (rows, RowMerge.equal(StructType(key.map(rows.schema(_)))))
      case None if batch.input.isInsertOnly =>
        (batch.inserted(Some(1)).withColumn(Gone, lit(false)), "false")
      case None =>
        // what comes must not meet its equals
        val rows = counted(batch)
        val columns = StructType(names.map(rows.schema(_)))
        (rows, s"${RowMerge.equal(columns)} AND ${RowMerge.same(columns)} AND c.$Gone")
    }
    // a MERGE reads its source more than once
    val written = EmptyPartitions.refuse(changes, partitions, table)
    written.persist()
    try
      if (!written.isEmpty) {
        val application = DeltaCommits.application(batch.queryId, table)
        Delta.having(session, Delta.ofBatch(application, batch.batchId)) {
          new RowMerge(session, table, names)(written, condition)
        }
      }
    finally written.unpersist()
  }

  /**
   * What takes whole rows to where they should be: each row of which there are fewer, once, to
   * delete all that are the same; and each row as often as it is to be inserted.
   */
  private def counted(batch: ChangelogBatch): DataFrame = {
    val names = batch.input.columnNames
    val net = batch.netRows.persist()
    try {
      val there = batch.changes.sparkSession.table(table).withColumn(There, lit(1L))
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
    } finally net.unpersist()
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
