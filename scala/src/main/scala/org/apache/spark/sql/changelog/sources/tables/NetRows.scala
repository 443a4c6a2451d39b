// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.RowKind

/** Leaves what is left of inserts and deletes when those of equal rows have cancelled out. */
private[tables] object NetRows {

  def apply(rows: DataFrame, names: Seq[String]): DataFrame = {
    val types = names.map(rows.schema(_).dataType)
    if (types.exists(_.existsRecursively(_.isInstanceOf[VariantType]))) rows
    else {
      val exact = names.zip(types).map { case (name, dataType) => as(name, compared(dataType)) }
      val sign = when(quoted(RowKind.ChangeTypeColumnName) === "insert", 1L).otherwise(-1L)
      val counted = rows.groupBy(exact: _*).agg(sum(sign).as(Net))
      val kind = when(col(Net) > 0, "insert").otherwise("delete")
      val repeated = explode(array_repeat(kind, abs(col(Net)).cast(IntegerType)))
      // out of ANSI mode Spark takes a text for one that may be no number, and casts it to such as may be NULL
      val columns = names.zip(types).map {
        case (name, dataType) if compared(dataType) == dataType => quoted(name)
        case (name, dataType) => as(name, dataType.asNullable)
      }
      counted
        .where(col(Net) =!= 0)
        .select(columns :+ repeated.as(RowKind.ChangeTypeColumnName): _*)
    }
  }

  /**
   * As what values are grouped: by what they are, and not by what Spark takes for equal, 'a' and 'A', 0.0
   * and -0.0.
   */
  private def compared(dataType: DataType): DataType = dataType match {
    case _: FloatType | _: DoubleType => StringType
    case text: StringType if !text.isUTF8BinaryCollation => StringType
    case array: ArrayType => array.copy(elementType = compared(array.elementType))
    case struct: StructType =>
      StructType(struct.map(field => field.copy(dataType = compared(field.dataType))))
    case map: MapType =>
      map.copy(keyType = compared(map.keyType), valueType = compared(map.valueType))
    case other => other
  }

  private def as(name: String, dataType: DataType): Column = quoted(name).cast(dataType).as(name)

  def quoted(name: String): Column = col(quoteIdentifier(name))

  private val Net = "_net"
}
