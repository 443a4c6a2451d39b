// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.{DataType, StructField, StructType}

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * ViewColumns: the column names and comments given by the view's statement, if any.
 *
 * Names different from the query's become part of the query. Every reader of the query's text then gets the view's
 * columns:
 *
 * {{{
 *   CREATE … v (city STRING, n BIGINT) AS q           =>  SELECT * FROM (q) AS v(city, n)
 *   CREATE … TBLPROPERTIES (… 'ignore') AS SELECT *   =>  SELECT city, n FROM (q)
 * }}}
 */
class ViewColumns(view: TableIdentifier, columns: Seq[StructField]) {

  /** Returns the query under these names, and the resulting columns. */
  def apply(written: ViewQuery, session: SparkSession): (ViewQuery, StructType) = {
    val query =
      if (!written.definition.listsColumns) written
      else new ViewQuery(session, written.definition.copy(query = list(written))).check()
    if (columns.isEmpty) (query, query.schema)
    else {
      check(query.schema)
      val named =
        if (columns.map(_.name) == query.schema.fieldNames.toSeq) query
        else new ViewQuery(session, query.definition.copy(query = rename(query))).check()
      val commented = named.schema.fields.zip(columns).map { case (field, column) =>
        column.getComment().fold(field)(field.withComment)
      }
      (named, StructType(commented))
    }
  }

  private def list(query: ViewQuery): String = {
    val names = query.schema.fieldNames.map(quoteIdentifier).mkString(", ")
    s"SELECT $names FROM (\n${query.definition.query}\n)"
  }

  private def rename(query: ViewQuery): String = {
    val names = columns.map(column => quoteIdentifier(column.name)).mkString(", ")
    // The last line of the query may be a comment.
    s"SELECT * FROM (\n${query.definition.query}\n) AS ${quoteIdentifier(view.table)}($names)"
  }

  private def check(found: StructType): Unit = {
    val isSame = found.size == columns.size && found.zip(columns).forall { case (field, column) =>
      DataType.equalsIgnoreNullability(field.dataType, column.dataType)
    }
    if (!isSame) {
      def list(fields: Seq[StructField]) =
        fields.map(field => s"${field.name} ${field.dataType.sql}")
      throw analysis(
        "CHANGELOG_VIEW_COLUMNS_DIFFER",
        "view" -> view,
        "listed" -> list(columns),
        "found" -> list(found))
    }
  }
}
