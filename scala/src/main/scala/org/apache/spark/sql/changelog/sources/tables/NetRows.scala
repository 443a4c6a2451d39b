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
 * Leaves what is left of rows that come and go when those that are the same have cancelled out.
 *
 * They are told apart by what they are, and not by what Spark takes for equal, 'a' and 'A' in a
 * collation, 0.0 and -0.0.
 */
private[changelog] object NetRows {

  /** Inserts and deletes; those of rows that Spark can't group are left as they are. */
  def apply(rows: DataFrame, names: Seq[String]): DataFrame =
    if (isCountable(names.map(rows.schema(_).dataType))) netted(rows, names) else rows

  /** The same, of rows that can be grouped. */
  def netted(rows: DataFrame, names: Seq[String]): DataFrame = {
    val sign = when(quoted(RowKind.ChangeTypeColumnName) === "insert", 1L).otherwise(-1L)
    val kind = when(col(Net) > 0, "insert").otherwise("delete")
    val repeated = explode(array_repeat(kind, abs(col(Net)).cast(IntegerType)))
    summed(rows.withColumn(Net, sign), names, Net)
      .where(col(Net) =!= 0)
      .select(names.map(quoted) :+ repeated.as(RowKind.ChangeTypeColumnName): _*)
  }

  /** Each row once, of the columns `names`, with the sums of what the columns `counts` say of it. */
  def summed(rows: DataFrame, names: Seq[String], counts: String*): DataFrame = {
    val types = names.map(rows.schema(_).dataType)
    val exact = names.zip(types).map { case (name, dataType) => as(name, exactly(dataType)) }
    // out of ANSI mode Spark takes a text for one that may be no number, and casts it to such as may be NULL
    val columns = names.zip(types).map {
      case (name, dataType) if exactly(dataType) == dataType => quoted(name)
      case (name, dataType) => as(name, dataType.asNullable)
    }
    val sums = counts.map(count => sum(quoted(count)).as(count))
    rows
      .groupBy(exact: _*)
      .agg(sums.head, sums.tail: _*)
      .select(columns ++ counts.map(quoted): _*)
  }

  /** Whether Spark groups rows of columns of these types. */
  def isCountable(types: Seq[DataType]): Boolean =
    !types.exists(_.existsRecursively(_.isInstanceOf[VariantType]))

  /** A type to which values of another are cast so that only the same ones are equal. */
  def exactly(dataType: DataType): DataType = dataType match {
    case _: FloatType | _: DoubleType => StringType
    case text: StringType if !text.isUTF8BinaryCollation => StringType
    case array: ArrayType => array.copy(elementType = exactly(array.elementType))
    case struct: StructType =>
      StructType(struct.map(field => field.copy(dataType = exactly(field.dataType))))
    case map: MapType =>
      map.copy(keyType = exactly(map.keyType), valueType = exactly(map.valueType))
    case other => other
  }

  private def as(name: String, dataType: DataType): Column = quoted(name).cast(dataType).as(name)

  def quoted(name: String): Column = col(quoteIdentifier(name))

  private val Net = "_changelog_net"
}
