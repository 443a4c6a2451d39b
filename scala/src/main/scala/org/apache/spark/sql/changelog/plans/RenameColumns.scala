// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, NamedExpression}

/** Gives columns the ids and names that others have, one for one. */
object RenameColumns {
  def apply(columns: Seq[Attribute], wanted: Seq[Attribute]): Seq[NamedExpression] =
    wanted.zip(columns).map { case (other, column) =>
      if (other.exprId == column.exprId) column
      else Alias(column, other.name)(other.exprId, other.qualifier)
    }
}
