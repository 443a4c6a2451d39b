// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.types.ByteType

/** What becomes of rows whose key is NULL. */
private[changelog] object NullKeys {

  /** For each column of a key that may be NULL, whether it is, and the row kind that such a row then has. */
  def branches(
      types: ChangeTypes,
      key: Seq[Attribute],
      row: Seq[Attribute]): Seq[(Expression, Expression)] =
    key.filter(_.nullable).map { column =>
      val handled = Invoke(
        Literal.fromObject(types),
        "nullKey",
        ByteType,
        Seq(Literal(column.name), ToPrettyString(CreateStruct(row), Some("UTC"))),
        returnNullable = false)
      IsNull(column) -> handled
    }
}
