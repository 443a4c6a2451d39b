// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.api.java.function.FilterFunction
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.execution.aggregate.TypedAggregateExpression
import org.apache.spark.sql.internal.UDFAdaptors
import org.apache.spark.util.IndylambdaScalaClosures

/** What Spark makes of functions of typed datasets. */
object TypedFunctions {

  /** Whether an expression calls a function of a typed dataset, such as an `Aggregator` or that of a `filter`. */
  def isCalledBy(expression: Expression): Boolean = expression match {
    case _: TypedAggregateExpression => true
    case Invoke(Literal(_: Function1[_, _] | _: FilterFunction[_], _), _, _, _, _, _, _, _) =>
      true
    case _ => false
  }

  /** Whether a function over partitions is what `flatMap` makes of one over rows. */
  def isFlatMap(function: Iterator[Any] => Iterator[Any]): Boolean =
    IndylambdaScalaClosures.getSerializationProxy(function).exists { lambda =>
      lambda.getImplClass == UDFAdaptors.getClass.getName.replace('.', '/') &&
      lambda.getImplMethodName.contains("flatMapToMapPartitions")
    }
}
