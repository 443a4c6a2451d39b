// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.util.{quoteIdentifier, quoteIfNeeded}
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions._

import org.apache.spark.sql.changelog.errors.SinkErrors
import org.apache.spark.sql.changelog.sinks.ChangelogBatch._
import org.apache.spark.sql.changelog.sinks.{
  ChangelogBatch,
  ChangelogSink,
  SinkInput,
  SinkOptions
}

/**
 * Keeps a table current by `MERGE`: one of Delta, Iceberg or any other source with row-level
 * operations.
 *
 * A batch is one `MERGE`, so it becomes visible at once. Merging it again changes nothing, since
 * rows are replaced by key; Delta also notes the batch in its log and then skips it, which makes
 * rows without a key arrive once too.
 */
class TableSink(options: SinkOptions) extends ChangelogSink(options.format) {
  import TableSink._

  private val provider = options.get("provider").getOrElse("delta")
  private val table: String = (options.get("table"), options.get("path")) match {
    case (Some(name), None) =>
      CatalystSqlParser.parseMultipartIdentifier(name).map(quoteIfNeeded).mkString(".")
    case (None, Some(path)) => s"$provider.${quoteIdentifier(path)}"
    case _ =>
      throw SinkErrors.optionMissing(format, "table", "either a table or a path is needed")
  }
  private val createsTable = options.boolean("createTable", default = false)
  @volatile private var exists = false

  override protected def check(input: SinkInput): Unit = input.key(options.key)

  override def write(batch: ChangelogBatch): Unit = {
    val session = batch.changes.sparkSession
    if (!exists) create(batch)
    exists = true
    val names = batch.input.columnNames
    val (changes, key) = batch.input.key(options.key) match {
      case Some(key) =>
        val row = coalesce(col(After), col(Before)).as("row")
        val rows = batch.byKey(key, session.sessionState.conf.numShufflePartitions)
        (rows.select(col(After).isNull.as(Gone), row).select(Gone, "row.*"), Some(key))
      case None => (batch.inserted(1).withColumn(Gone, lit(false)), None)
    }
    // a MERGE reads its source more than once
    changes.persist()
    try if (!changes.isEmpty) merge(session, changes, names, key, batch)
    finally changes.unpersist()
  }

  private def merge(
      session: SparkSession,
      changes: DataFrame,
      names: Seq[String],
      key: Option[Seq[String]],
      batch: ChangelogBatch): Unit = {
    def column(side: String, name: String) = s"$side.${quoteIdentifier(name)}"
    val condition = key match {
      case None => "false"
      case Some(columns) =>
        val equal = columns.map { name =>
          // with = a table can skip files; NULL is only equal by <=>
          val operator = if (changes.schema(name).nullable) "<=>" else "="
          s"${column("t", name)} $operator ${column("c", name)}"
        }
        if (equal.isEmpty) "true" else equal.mkString(" AND ")
    }
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
      session.conf.set(s"$prefix.txnAppId", s"${batch.queryId}/$table")
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
  private val Gone = "_gone"
  private val View = "_changelog_changes"
}
