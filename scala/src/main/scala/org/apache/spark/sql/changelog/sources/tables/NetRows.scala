// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.RowKind

/**
 * NetRows: cancels inserts and deletes of equal rows, and returns the remaining rows.
 *
 * Rows are compared by their exact values, not by Spark's equality, which may equate 'a' with 'A' in a collation, and
 * 0.0 with -0.0.
 */
private[changelog] object NetRows {

  /** Nets inserts and deletes. Rows that Spark can't group stay as they are. */
  def apply(rows: DataFrame, names: Seq[String]): DataFrame =
    if (isCountable(names.map(rows.schema(_).dataType))) netted(rows, names) else rows

  /** Nets inserts and deletes of rows that Spark can group. */
  def netted(rows: DataFrame, names: Seq[String]): DataFrame = {
    val sign = when(quoted(RowKind.ChangeTypeColumnName) === "insert", 1L).otherwise(-1L)
    val kind = when(col(Net) > 0, "insert").otherwise("delete")
    val repeated = explode(array_repeat(kind, abs(col(Net)).cast(IntegerType)))
    summed(rows.withColumn(Net, sign), names, Net)
      .where(col(Net) =!= 0)
      .select(names.map(quoted) :+ repeated.as(RowKind.ChangeTypeColumnName): _*)
  }

  /** Returns the distinct rows of the columns `names`, with the sums of the columns `counts`. */
  def summed(rows: DataFrame, names: Seq[String], counts: String*): DataFrame = {
    val types = names.map(rows.schema(_).dataType)
    val exact = names.zip(types).map { case (name, dataType) => as(name, identityType(dataType)) }
    // Outside ANSI mode, the cast of a text can fail, and Spark makes the type nullable.
    val columns = names.zip(types).map {
      case (name, dataType) if identityType(dataType) == dataType => quoted(name)
      case (name, dataType) => as(name, dataType.asNullable)
    }
    val sums = counts.map(count => sum(quoted(count)).as(count))
    rows
      .groupBy(exact: _*)
      .agg(sums.head, sums.tail: _*)
      .select(columns ++ counts.map(quoted): _*)
  }

  /** Returns whether Spark can group rows with columns of these types. */
  def isCountable(types: Seq[DataType]): Boolean =
    !types.exists(_.existsRecursively(_.isInstanceOf[VariantType]))

  /** Returns a type in which only identical values are equal. */
  def identityType(dataType: DataType): DataType = dataType match {
    case _: FloatType | _: DoubleType => StringType
    case text: StringType if !text.isUTF8BinaryCollation => StringType
    case array: ArrayType => array.copy(elementType = identityType(array.elementType))
    case struct: StructType =>
      StructType(struct.map(field => field.copy(dataType = identityType(field.dataType))))
    case map: MapType =>
      map.copy(keyType = identityType(map.keyType), valueType = identityType(map.valueType))
    case other => other
  }

  private def as(name: String, dataType: DataType): Column = quoted(name).cast(dataType).as(name)

  def quoted(name: String): Column = col(quoteIdentifier(name))

  private val Net = "_changelog_net"
}
