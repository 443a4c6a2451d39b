// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.connectors.delta.DeltaConflicts
import org.apache.spark.sql.changelog.sinks.ChangelogBatch.Gone
import org.apache.spark.sql.changelog.sources.tables.NetRows

/**
 * Changes a table by one `MERGE`.
 *
 * @param table
 *   as statements name it
 * @param names
 *   its columns
 */
private[changelog] class RowMerge(session: SparkSession, table: String, names: Seq[String]) {
  import RowMerge._

  /**
   * Rows `t` of the table that meet a row `c` of `changes` are deleted if that is [[Gone]], and else updated; what
   * meets none is inserted.
   *
   * @param clause
   *   what Delta is told besides
   */
  def apply(changes: DataFrame, condition: String, clause: String = ""): Unit = {
    val updates = names.map(name => s"${quoteIdentifier(name)} = ${column("c", name)}")
    changes.createOrReplaceTempView(View)
    try {
      DeltaConflicts.passing(session.sql(s"""
        MERGE $clause INTO $table AS t USING $View AS c ON $condition
        WHEN MATCHED AND c.$Gone THEN DELETE
        WHEN MATCHED THEN UPDATE SET ${updates.mkString(", ")}
        WHEN NOT MATCHED AND NOT c.$Gone THEN
          INSERT (${names.map(quoteIdentifier).mkString(", ")})
          VALUES (${names.map(column("c", _)).mkString(", ")})"""))
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
   * The condition that a row `t` of the table has the values that a change has.
   *
   * @param columns
   *   those that are looked at
   * @param side
   *   what has them of the change
   */
  def equal(columns: StructType, side: String = "c"): String =
    all(columns.map { field =>
      // with = a table can skip files; NULL is only equal by <=>
      val operator = if (field.nullable) "<=>" else "="
      s"${column("t", field.name)} $operator ${column(side, field.name)}"
    })

  /** The condition that values are the same that Spark takes for equal, 'a' and 'A' in a collation. */
  def same(columns: StructType, side: String = "c"): String =
    all(columns.flatMap { field =>
      val exact = exactly(field.dataType)
      def cast(side: String) = s"CAST(${column(side, field.name)} AS ${exact.sql})"
      val isKnown = exact == field.dataType.asNullable
      if (isKnown) None else Some(s"${cast("t")} <=> ${cast(side)}")
    })

  /** The type as which values of a column are the same, whether a table has NULL among them or not. */
  def exactly(dataType: DataType): DataType = NetRows.exactly(dataType).asNullable

  def column(side: String, name: String): String = s"$side.${quoteIdentifier(name)}"

  private def all(conditions: Seq[String]): String =
    if (conditions.isEmpty) "true" else conditions.mkString(" AND ")
}
