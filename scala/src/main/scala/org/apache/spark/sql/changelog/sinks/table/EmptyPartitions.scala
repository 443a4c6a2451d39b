// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.functions.{lit, udf}
import org.apache.spark.sql.types.StringType

import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.sinks.ChangelogBatch.quoted

/**
 * Rejects empty texts in partition columns. Delta stores them as NULL, and later changes would
 * not find the row.
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
