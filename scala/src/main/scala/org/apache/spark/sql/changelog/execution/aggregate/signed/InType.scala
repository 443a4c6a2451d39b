// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Expression}
import org.apache.spark.sql.types.DataType

/**
 * A value in another type, or as it is if it has that already.
 *
 * Spark's optimizer takes casts away that cast nothing, and its generated code counts on that. One that
 * an aggregate computes several times is found to be computed once, but generates the code of its
 * input in each place: where that code is cut into functions, they lack the columns it reads.
 */
private[aggregate] object InType {
  def apply(value: Expression, dataType: DataType): Expression =
    if (DataType.equalsStructurally(value.dataType, dataType)) value
    else Cast(value, dataType, None, EvalMode.LEGACY)
}
