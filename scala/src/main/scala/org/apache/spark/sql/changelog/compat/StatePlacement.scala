// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.physical.{AllTuples, Distribution, Partitioning}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.{
  REQUIRED_BY_STATEFUL_OPERATOR,
  ShuffleExchangeExec
}
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorPartitioning
import org.apache.spark.sql.internal.SQLConf

/** How rows are placed where state is kept of them, which must be the same in every batch. */
object StatePlacement {

  /** Rows that agree on `key` together; all of them, if it has no columns. */
  def clusteredBy(key: Seq[Expression], numPartitions: Int, conf: SQLConf): Distribution =
    if (key.isEmpty) AllTuples
    else StatefulOperatorPartitioning.getCompatibleDistribution(key, numPartitions, conf)

  /** A shuffle that Spark leaves as it is, though the rows may be so placed already. */
  def shuffle(partitioning: Partitioning, rows: SparkPlan): SparkPlan =
    ShuffleExchangeExec(partitioning, rows, REQUIRED_BY_STATEFUL_OPERATOR)
}
