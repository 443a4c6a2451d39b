// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.functions.{lit, udf}
import org.apache.spark.sql.types.{DataType, StringType, StructType}

import org.apache.spark.sql.changelog.connectors.delta.{DeltaConflicts, RowIdentity}
import org.apache.spark.sql.changelog.connectors.iceberg.IcebergRelation
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.sinks.ChangelogBatch.{Gone, quoted}
import org.apache.spark.sql.changelog.sources.tables.RowDelta

/**
 * Changes a table by one `MERGE`.
 *
 * @param table
 *   the table's name in statements
 * @param names
 *   the table's columns
 */
private[changelog] class RowMerge(session: SparkSession, table: String, names: Seq[String]) {
  import RowMerge._

  /**
   * Merges `changes` into the table. A row `t` of the table that matches a change `c` is deleted
   * if `c` is [[Gone]], and updated otherwise. A change without a match is inserted.
   *
   * @param clause
   *   an additional clause for Delta
   */
  def apply(changes: DataFrame, condition: String, clause: String = ""): Unit = {
    val updates = names.map(name => s"${quoteIdentifier(name)} = ${column("c", name)}")
    changes.createOrReplaceTempView(View)
    try {
      val merge = session.withActive(session.sessionState.sqlParser.parsePlan(s"""
        MERGE $clause INTO $table AS t USING $View AS c ON $condition
        WHEN MATCHED AND c.$Gone THEN DELETE
        WHEN MATCHED THEN UPDATE SET ${updates.mkString(", ")}
        WHEN NOT MATCHED AND NOT c.$Gone THEN
          INSERT (${names.map(quoteIdentifier).mkString(", ")})
          VALUES (${names.map(column("c", _)).mkString(", ")})"""))
      DeltaConflicts.passing(Dataset.ofRows(session, IcebergRelation.fenced(session, merge)))
      ()
    } finally {
      session.catalog.dropTempView(View)
      ()
    }
  }
}

private[changelog] object RowMerge {
  private val View = "_changelog_changes"

  /**
   * Returns the condition that a row `t` of the table equals a change.
   *
   * @param columns
   *   the compared columns
   * @param side
   *   the alias of the change
   */
  def equal(columns: StructType, side: String = "c"): String =
    all(columns.map { field =>
      // With `=` a table can skip files. NULL equals NULL only with `<=>`.
      val operator = if (field.nullable) "<=>" else "="
      s"${column("t", field.name)} $operator ${column(side, field.name)}"
    })

  /**
   * Returns the condition that values are identical, even if a collation treats different values as equal.
   */
  def same(columns: StructType, side: String = "c"): String =
    all(columns.flatMap { field =>
      val exact = identityType(field.dataType)
      def cast(side: String) = s"CAST(${column(side, field.name)} AS ${exact.sql})"
      val isKnown = exact == field.dataType.asNullable
      if (isKnown) None else Some(s"${cast("t")} <=> ${cast(side)}")
    })

  /** Returns the type in which equal values are identical, ignoring nullability. */
  def identityType(dataType: DataType): DataType = RowDelta.identityType(dataType).asNullable

  /** Returns how [[org.apache.spark.sql.changelog.connectors.delta.DeltaWriter]] finds rows by some columns. */
  def identity(columns: StructType, by: Seq[String], isKey: Boolean): RowIdentity =
    RowIdentity(
      columns,
      by.map(name => name -> RowDelta.identityType(columns(name).dataType)),
      isKey)

  def column(side: String, name: String): String = s"$side.${quoteIdentifier(name)}"

  private def all(conditions: Seq[String]): String =
    if (conditions.isEmpty) "true" else conditions.mkString(" AND ")
}

/**
 * Rejects empty texts in partition columns. Delta stores them as NULL, and later changes would not find the row.
 */
private[changelog] object EmptyPartitions {

  /** Returns the partition columns of a text type. */
  def columnsOf(table: DataFrame): Seq[String] = table.queryExecution.analyzed
    .collectFirst { case LogicalRelation(files: HadoopFsRelation, _, _, _, _) =>
      files.partitionSchema.filter(_.dataType.isInstanceOf[StringType]).map(_.name)
    }
    .getOrElse(Nil)

  /**
   * Returns the rows, with a check that fails for empty texts.
   *
   * @param table
   *   the name of the target, for errors
   */
  def refuse(rows: DataFrame, columns: Seq[String], table: String): DataFrame =
    columns.filter(rows.columns.contains(_)).foldLeft(rows) { (rows, column) =>
      // Marked as nondeterministic. Otherwise Spark evaluates the check even for rows filtered
      // out below.
      val refuse = udf[Boolean, String](_ =>
        throw runtime("CHANGELOG_SINK_PARTITION_EMPTY", "table" -> table, "column" -> column))
        .asNondeterministic()
      val value = quoted(column)
      rows.where(value.isNull || value.cast(StringType) =!= lit("") || refuse(value))
    }
}
