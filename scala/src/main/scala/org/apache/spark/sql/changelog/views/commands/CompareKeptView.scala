// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.{abs, col, lit, when}
import org.apache.spark.sql.types.{LongType, StringType, StructField, StructType}
import org.apache.spark.sql.{SparkSession => AnySession}

import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.views.verify.{RowDifference, VerifyView}

/**
 * `COMPARE MATERIALIZED VIEW v WITH w`: the rows of which one has more than the other, at most
 * [[VerifyView.MostRows]] of them. None if they are equal.
 *
 * @param other
 *   a view or any table
 */
case class CompareKeptView(name: Seq[String], other: Seq[String]) extends ViewCommand {
  import CompareKeptView._

  /** The columns of the view, which are asked for where the statement is analyzed. */
  override lazy val output: Seq[Attribute] = {
    val session = castToImpl(AnySession.active)
    toAttributes(
      StructType(
        StructField(MoreIn, StringType, nullable = false) +:
          StructField(Times, LongType, nullable = false) +:
          find(session, name).schema.fields))
  }

  override protected def runIn(session: SparkSession): Seq[Row] = {
    val left = session.table(find(session, name).sql)
    val right = session.table(shown(other))
    val (columns, others) = (columnsOf(left), columnsOf(right))
    if (columns != others) {
      throw ViewErrors.comparedColumnsDiffer(shown(name), shown(other), columns, others)
    }
    val renamed = right.toDF(left.columns.toSeq: _*)
    val times = col(RowDifference.Times)
    val row = col(RowDifference.Row)
    RowDifference
      .counts(left, renamed)
      .select(
        when(times > 0, lit(shown(name)))
          .otherwise(lit(shown(other)))
          .as(MoreIn) +:
          abs(times).as(Times) +:
          left.columns.toSeq.map(column => row.getField(column).as(column)): _*)
      .take(VerifyView.MostRows)
      .toSeq
  }

  private def shown(name: Seq[String]): String = name.map(quoteIfNeeded).mkString(".")

  /** Names are the same in any case. */
  private def columnsOf(table: DataFrame): Seq[String] =
    table.schema.map(field => s"${field.name.toLowerCase} ${field.dataType.sql}")
}

object CompareKeptView {

  /** Which of the two has more of the row. */
  val MoreIn = "_more_in"

  /** How many more. */
  val Times = "_times"
}
