// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.RowOrdering
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.util.{quoteIdentifier, quoteIfNeeded}
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.DataType

import org.apache.spark.sql.changelog.errors.SinkErrors
import org.apache.spark.sql.changelog.sinks.ChangelogBatch._
import org.apache.spark.sql.changelog.sinks.{
  ChangelogBatch,
  ChangelogSink,
  SinkInput,
  SinkOptions
}
import org.apache.spark.sql.changelog.sources.tables.{DeltaCommits, NetRows}

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

  override protected def check(input: SinkInput): Unit = {
    val found = key(input)
    if (!input.isInsertOnly) input.checkComparable(found, RowOrdering.isOrderable)
  }

  private def key(input: SinkInput): Option[Seq[String]] =
    if (countsRows) input.keyOrNone(options.key) else input.key(options.key)

  override protected def targetName: String = table

  override protected def lastBatchOf(session: SparkSession, queryId: String): Option[Long] =
    DeltaCommits.lastBatch(session, table, queryId)

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
        (rows, equal(key, rows))
      case None if batch.input.isInsertOnly =>
        (batch.inserted(Some(1)).withColumn(Gone, lit(false)), "false")
      case None =>
        // what comes must not meet its equals
        val rows = counted(batch)
        (rows, s"${equal(names, rows)} AND ${same(names, rows)} AND c.$Gone")
    }
    // a MERGE reads its source more than once
    changes.persist()
    try if (!changes.isEmpty) merge(session, changes, names, condition, batch)
    finally changes.unpersist()
  }

  /** The condition that a row `t` of the table has the values that a row `c` of `changes` has. */
  private def equal(columns: Seq[String], changes: DataFrame): String = {
    val conditions = columns.map { name =>
      // with = a table can skip files; NULL is only equal by <=>
      val operator = if (changes.schema(name).nullable) "<=>" else "="
      s"${column("t", name)} $operator ${column("c", name)}"
    }
    if (conditions.isEmpty) "true" else conditions.mkString(" AND ")
  }

  /** The condition that values are the same that Spark takes for equal, 'a' and 'A' in a collation. */
  private def same(columns: Seq[String], changes: DataFrame): String = {
    val conditions = columns.flatMap { name =>
      val exact = exactly(changes, name)
      def cast(side: String) = s"CAST(${column(side, name)} AS ${exact.sql})"
      val isKnown = exact == changes.schema(name).dataType.asNullable
      if (isKnown) None else Some(s"${cast("t")} <=> ${cast("c")}")
    }
    if (conditions.isEmpty) "true" else conditions.mkString(" AND ")
  }

  /** The type as which values of a column are the same, whether a table has NULL among them or not. */
  private def exactly(rows: DataFrame, name: String): DataType =
    NetRows.exactly(rows.schema(name).dataType).asNullable

  private def column(side: String, name: String) = s"$side.${quoteIdentifier(name)}"

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
          val exact = exactly(net, name)
          col(column("f", name)).cast(exact) <=> col(column("t", name)).cast(exact)
        }
        .reduce(_ && _)
      val fewerNames = names :+ Net
      val fewerColumns = fewerNames.map(name => col(column("f", name)).as(name))
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

  private def merge(
      session: SparkSession,
      changes: DataFrame,
      names: Seq[String],
      condition: String,
      batch: ChangelogBatch): Unit = {
    val updates = names.map(name => s"${quoteIdentifier(name)} = ${column("c", name)}")
    changes.createOrReplaceTempView(View)
    try {
      Delta.ofBatch(session, batch) {
        session.sql(s"""
          MERGE INTO $table AS t USING $View AS c ON $condition
          WHEN MATCHED AND c.$Gone THEN DELETE
          WHEN MATCHED THEN UPDATE SET ${updates.mkString(", ")}
          WHEN NOT MATCHED AND NOT c.$Gone THEN
            INSERT (${names.map(quoteIdentifier).mkString(", ")})
            VALUES (${names.map(column("c", _)).mkString(", ")})""")
      }
    } finally session.catalog.dropTempView(View)
  }

  private def create(batch: ChangelogBatch): Unit = {
    val session = batch.changes.sparkSession
    // a path is not in a catalog, and Delta's answers for any
    val found =
      try session.table(table).schema.nonEmpty
      catch { case _: AnalysisException => false }
    if (!found) {
      if (!createsTable) throw SinkErrors.tableNotFound(format, table)
      session.sql(s"CREATE TABLE IF NOT EXISTS $table (${batch.schema.toDDL}) USING $provider")
    }
  }

  /** Notes in Delta's log which batch of which query a commit is; other tables don't look at it. */
  private object Delta {
    private val prefix = "spark.databricks.delta.write"

    def ofBatch(session: SparkSession, batch: ChangelogBatch)(body: => Any): Unit = {
      session.conf.set(s"$prefix.txnAppId", DeltaCommits.application(batch.queryId, table))
      session.conf.set(s"$prefix.txnVersion", batch.batchId)
      try {
        body
        ()
      } finally
        Seq("txnAppId", "txnVersion").foreach(name => session.conf.unset(s"$prefix.$name"))
    }
  }
}

object TableSink {
  private val There = "_there"
  private val View = "_changelog_changes"
}
