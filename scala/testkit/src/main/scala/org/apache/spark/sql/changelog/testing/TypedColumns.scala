// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types.StructType

/** Casts columns to the types of a schema. In-memory streams lose collations and the CHAR type. */
object TypedColumns {

  def apply(frame: DataFrame, schema: StructType): DataFrame = {
    def kinds(schema: StructType) = schema.map(field => (field.dataType, field.metadata))
    if (kinds(frame.schema.asNullable) == kinds(schema.asNullable)) frame
    else {
      frame.select(schema.map { field =>
        col(s"`${field.name.replace("`", "``")}`")
          .cast(field.dataType)
          .as(field.name, field.metadata)
      }: _*)
    }
  }
}
