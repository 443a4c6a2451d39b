// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.functions.{lit, udf}
import org.apache.spark.sql.types.StringType

import org.apache.spark.sql.changelog.errors.SinkErrors
import org.apache.spark.sql.changelog.sinks.ChangelogBatch.quoted

/** Refuses an empty text by which a table is partitioned: Delta keeps it as NULL, and no change would find it again. */
private[changelog] object EmptyPartitions {

  /** The columns in which it would be. */
  def columnsOf(table: DataFrame): Seq[String] = table.queryExecution.analyzed
    .collectFirst { case LogicalRelation(files: HadoopFsRelation, _, _, _, _) =>
      files.partitionSchema.filter(_.dataType.isInstanceOf[StringType]).map(_.name)
    }
    .getOrElse(Nil)

  /**
   * The same rows, of which those are refused.
   *
   * @param table
   *   what is to hold them, as people call it
   */
  def refuse(rows: DataFrame, columns: Seq[String], table: String): DataFrame =
    columns.filter(rows.columns.contains(_)).foldLeft(rows) { (rows, column) =>
      // not deterministic, else it would be asked of rows that the query below leaves out
      val refuse = udf[Boolean, String](_ => throw SinkErrors.partitionEmpty(table, column))
        .asNondeterministic()
      val value = quoted(column)
      rows.where(value.isNull || value.cast(StringType) =!= lit("") || refuse(value))
    }
}
