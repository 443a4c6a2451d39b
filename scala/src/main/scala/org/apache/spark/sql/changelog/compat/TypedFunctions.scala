// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.internal.UDFAdaptors
import org.apache.spark.util.IndylambdaScalaClosures

/** What Spark makes of functions of typed datasets. */
object TypedFunctions {

  /** Whether a function over partitions is what `flatMap` makes of one over rows. */
  def isFlatMap(function: Iterator[Any] => Iterator[Any]): Boolean =
    IndylambdaScalaClosures.getSerializationProxy(function).exists { lambda =>
      lambda.getImplClass == UDFAdaptors.getClass.getName.replace('.', '/') &&
      lambda.getImplMethodName.contains("flatMapToMapPartitions")
    }
}
