// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.verify

import org.apache.spark.sql.Column
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.sinks.ChangelogBatch.quoted

/** RowDifference: the rows missing in another table, with one copy for each missing copy. */
private[views] object RowDifference {

  def apply(rows: DataFrame, others: DataFrame): DataFrame =
    if (rows.schema.forall(field => isComparable(field.dataType))) rows.exceptAll(others)
    else byComparable(rows, others)

  /** Returns the column in a form with an order, equal for equal values. */
  def comparable(column: Column, dataType: DataType): Column = dataType match {
    case _ if isComparable(dataType) => column
    case _: VariantType => to_json(column)
    case MapType(_, valueType, _) =>
      transform(
        array_sort(map_keys(column)),
        key => struct(key.as("key"), comparable(column(key), valueType).as("value")))
    case ArrayType(elementType, _) => transform(column, comparable(_, elementType))
    case StructType(fields) =>
      val compared = fields.toSeq.map { field =>
        comparable(column.getField(field.name), field.dataType).as(field.name)
      }
      when(column.isNotNull, struct(compared: _*))
    case _ => column
  }

  /** Returns whether Spark can compare values of a type. Spark compares neither maps nor variants. */
  private def isComparable(dataType: DataType): Boolean =
    !dataType.existsRecursively {
      case _: MapType | _: VariantType => true
      case _ => false
    }

  private def byComparable(rows: DataFrame, others: DataFrame): DataFrame =
    counts(rows, others)
      .where(col(Times) > 0)
      .select(explode(array_repeat(col(Row), col(Times).cast(IntegerType))).as(Row))
      .select(rows.columns.toSeq.map(name => col(Row).getField(name).as(name)): _*)

  /**
   * Returns the rows with different numbers of copies in two tables, in the column [[Row]]. The column [[Times]] has
   * the number of additional copies in the first table, negative if the second table has more copies.
   */
  def counts(rows: DataFrame, others: DataFrame): DataFrame = {
    val names = rows.columns.toSeq
    val forms = names.indices.map(index => s"c$index")
    def counted(frame: DataFrame, sign: Int) = {
      val compared = names.zip(forms).map { case (name, form) =>
        comparable(quoted(name), frame.schema(name).dataType).as(form)
      }
      frame.select(
        compared :+ struct(names.map(quoted): _*).as(Row) :+ lit(sign.toLong).as(Times): _*)
    }
    counted(rows, 1)
      .union(counted(others, -1))
      .groupBy(forms.map(col): _*)
      .agg(sum(Times).as(Times), coalesce(rowOf(col(Times) > 0), rowOf(col(Times) < 0)).as(Row))
      .where(col(Times) =!= 0)
  }

  /** Returns a row of a group under a condition, if any. */
  private def rowOf(condition: Column): Column =
    first(when(condition, col(Row)), ignoreNulls = true)

  val Row = "row"
  val Times = "times"
}
