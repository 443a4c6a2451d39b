// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.CreateTableWriter
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.expressions.{
  ClusterByTransform, Expressions, IdentityTransform, NamedReference, Transform
}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types.{BinaryType, StructType, TimestampType}

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** DeltaLayout: the partitioning or clustering of a view's new Delta table. */
class DeltaLayout(view: MaterializedView) {
  private val partitioned: Seq[NamedReference] = view.layout.collect {
    case IdentityTransform(column) => column
  }

  private val clustered: Seq[NamedReference] = view.layout.collect {
    case ClusterByTransform(columns) =>
      columns
  }.flatten

  view.layout.foreach {
    case IdentityTransform(_) | ClusterByTransform(_) =>
    case other =>
      throw analysis(
        "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
        "view" -> view.sql,
        "clause" -> s"Partitioning by ${other.describe()}",
        "advice" -> "Name columns, and compute in the query what they should hold.")
  }

  /**
   * Rejects column names unsupported by Delta's `MERGE`, and partition columns whose values Delta confuses. Delta
   * writes partition values as text. A timestamp becomes local time, where one hour occurs twice in autumn.
   */
  def check(): this.type = {
    view.schema.fieldNames.find(_.contains('`')).foreach { name =>
      throw analysis(
        "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
        "view" -> view.sql,
        "clause" -> s"A column whose name has a backtick, as $name has,",
        "advice" -> "Delta can't merge changes into it. Give it another name by AS, or store the view USING parquet.")
    }
    // Spark and Delta parse the names of partition and clustering columns a second time, without quotes.
    (partitioned ++ clustered).find(!_.fieldNames.forall(_.matches("[A-Za-z_]\\w*"))).foreach {
      column =>
        throw analysis(
          "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
          "view" -> view.sql,
          "clause" -> s"PARTITIONED BY or CLUSTER BY ${quoted(column)}, whose name is not of letters, digits and underscores,",
          "advice" -> "Give the column another name by AS, or store the view USING parquet.")
    }
    partitions.map(view.schema(_)).foreach { field =>
      if (Seq(BinaryType, TimestampType).contains(field.dataType)) {
        throw analysis(
          "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
          "view" -> view.sql,
          "clause" -> s"Partitioning by ${field.name}, of type ${field.dataType.sql}, of which Delta mixes up some values,",
          "advice" -> "CLUSTER BY it, or partition by a DATE, a TIMESTAMP_NTZ or a text made of it.")
      }
    }
    this
  }

  /** Returns the partition columns, spelled as in the view. */
  def partitions: Seq[String] = for {
    column <- partitioned
    field <- view.schema.fields
    if column.fieldNames.toSeq.map(_.toLowerCase) == Seq(field.name.toLowerCase)
  } yield field.name

  /** Returns the clauses of a `CREATE TABLE`. */
  def sql: String =
    Seq("PARTITIONED BY" -> partitioned, "CLUSTER BY" -> clustered)
      .collect { case (clause, columns) if columns.nonEmpty => s"$clause (${list(columns)})" }
      .mkString(" ")

  /** Sets the partitioning. Delta takes no clustering from this writer: see [[cluster]]. */
  def apply(writer: CreateTableWriter[Row]): CreateTableWriter[Row] =
    if (partitioned.nonEmpty) {
      val columns = partitioned.map(column => col(quoted(column)))
      writer.partitionedBy(columns.head, columns.tail: _*)
    } else writer

  /** Restores the clustering after a replacement of the whole table, because Delta forgets the clustering. */
  def cluster(session: SparkSession): Unit =
    if (clustered.nonEmpty) {
      session.sql(s"ALTER TABLE ${view.sql} CLUSTER BY (${list(clustered)})")
      ()
    }

  private def list(columns: Seq[NamedReference]): String = columns.map(quoted).mkString(", ")

  private def quoted(column: NamedReference): String =
    column.fieldNames().map(quoteIdentifier).mkString(".")
}

object DeltaLayout {

  /** Returns the layout of the view's table, restricted to `columns`. */
  def of(session: SparkSession, view: MaterializedView, columns: StructType): Seq[Transform] =
    if (!view.isDelta) Nil
    else {
      val detail = session.sql(s"DESCRIBE DETAIL ${view.sql}")
      val row = detail.select("partitionColumns", "clusteringColumns").head()
      def names(index: Int) = row.getSeq[String](index).filter(columns.fieldNames.contains(_))
      val clustered = names(1).map(name => Expressions.column(quoteIdentifier(name)))
      names(0).map(name => Expressions.identity(quoteIdentifier(name))) ++
        Option.when(clustered.nonEmpty)(ClusterByTransform(clustered))
    }
}
