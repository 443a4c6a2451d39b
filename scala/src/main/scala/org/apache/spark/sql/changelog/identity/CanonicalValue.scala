// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import java.security.MessageDigest

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Writes values of Catalyst's by what they are, and texts so that they are never taken for more. */
private[changelog] object CanonicalValue {

  def apply(value: Any, dataType: DataType): String = (value, dataType) match {
    case (null, _) => "NULL"
    case (text: UTF8String, _) => quoted(text.toString)
    case (bytes: Array[Byte], _) => bytes.map(byte => f"$byte%02x").mkString("X'", "", "'")
    case (array: ArrayData, ArrayType(element, _)) =>
      array.toSeq[Any](element).map(apply(_, element)).mkString("[", ", ", "]")
    case (map: MapData, MapType(key, element, _)) =>
      s"${apply(map.keyArray(), ArrayType(key))} -> ${apply(map.valueArray(), ArrayType(element))}"
    case (row: InternalRow, struct: StructType) => ofRow(row, struct.map(_.dataType))
    case (other, user: UserDefinedType[_]) => apply(other, user.sqlType)
    case (other, _) => other.toString
  }

  def ofRow(row: InternalRow, types: Seq[DataType]): String =
    row
      .toSeq(types)
      .zip(types)
      .map { case (value, dataType) => apply(value, dataType) }
      .mkString("(", ", ", ")")

  def quoted(text: String): String = s"'${text.replace("\\", "\\\\").replace("'", "\\'")}'"

  /** Stands for a text that is too long to be shown, or not to be. */
  def digest(text: String): String =
    MessageDigest
      .getInstance("SHA-256")
      .digest(text.getBytes("UTF-8"))
      .take(8)
      .map(byte => f"$byte%02x")
      .mkString
}
