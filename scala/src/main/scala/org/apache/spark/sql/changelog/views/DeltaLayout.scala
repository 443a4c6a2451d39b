// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.CreateTableWriter
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.expressions.{
  Expressions,
  IdentityTransform,
  NamedReference,
  Transform
}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.errors.ViewErrors

/** How the Delta table of a view is partitioned when it is made. */
class DeltaLayout(view: KeptView) {
  private val partitioned: Seq[NamedReference] = view.layout.collect {
    case IdentityTransform(column) => column
  }

  view.layout.foreach {
    case IdentityTransform(_) =>
    case other =>
      throw ViewErrors.clauseNotSupported(
        view.sql,
        s"Partitioning by ${other.describe()}",
        "Name columns, and compute in the query what they should hold.")
  }

  /** The clause of a `CREATE TABLE`. */
  def sql: String =
    if (partitioned.nonEmpty) s"PARTITIONED BY (${list(partitioned)})"
    else ""

  def apply(writer: CreateTableWriter[Row]): CreateTableWriter[Row] =
    if (partitioned.nonEmpty) {
      val columns = partitioned.map(column => col(quoted(column)))
      writer.partitionedBy(columns.head, columns.tail: _*)
    } else writer

  private def list(columns: Seq[NamedReference]): String = columns.map(quoted).mkString(", ")

  private def quoted(column: NamedReference): String =
    column.fieldNames().map(quoteIdentifier).mkString(".")
}

object DeltaLayout {

  /** How the table of a view is partitioned, by those of its columns that `columns` has too. */
  def of(session: SparkSession, view: KeptView, columns: StructType): Seq[Transform] =
    if (view.definition.provider != "delta") Nil
    else {
      session
        .sql(s"DESCRIBE DETAIL ${view.sql}")
        .select("partitionColumns")
        .head()
        .getSeq[String](0)
        .filter(columns.fieldNames.contains(_))
        .map(Expressions.identity)
    }
}
