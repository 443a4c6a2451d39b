// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.util.Locale

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.types.{DataType, StringType, StructField, StructType}

/**
 * Names the columns of a state record.
 *
 * State is read back by name, so that the names must differ: of several columns called `sum`, the
 * second is `sum_1`.
 */
object StateColumns {

  /** The columns of keys, which are told apart by their bytes, whatever a collation finds equal. */
  def ofKey(columns: Seq[Attribute]): StructType = apply(columns.map { column =>
    column.name -> column.dataType.transformRecursively { case _: StringType => StringType }
  })

  /** What an error calls the entry with the values of `key`, leaving out those that are NULL. */
  def keyText(columns: Seq[Attribute], key: InternalRow): String =
    columns
      .zip(key.toSeq(columns.map(_.dataType)))
      .collect { case (column, value) if value != null => s"${column.name} = $value" }
      .mkString(", ")

  def apply(columns: Seq[(String, DataType)]): StructType = {
    val taken = mutable.Set.empty[String]
    StructType(columns.map { case (name, dataType) =>
      val candidates = Iterator.single(name) ++ Iterator.from(1).map(index => s"${name}_$index")
      val free = candidates.find(candidate => taken.add(candidate.toLowerCase(Locale.ROOT))).get
      StructField(free, dataType)
    })
  }
}
