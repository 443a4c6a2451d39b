// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Distribution
import org.apache.spark.sql.execution.SparkPlan

import org.apache.spark.sql.changelog.compat.StatePlacement
import org.apache.spark.sql.changelog.execution.PassesRows

/**
 * Asks Spark for rows that are clustered as the operator above needs them, and sorted by more
 * columns than it asks for.
 *
 * @param numPartitions
 *   how many partitions the operator's state has
 */
private[aggregate] case class SortedRowsExec(
    clustering: Seq[Attribute],
    numPartitions: Int,
    order: Seq[SortOrder],
    child: SparkPlan)
    extends PassesRows {

  override def requiredChildDistribution: Seq[Distribution] =
    Seq(StatePlacement.clusteredBy(clustering, numPartitions, conf))

  override def requiredChildOrdering: Seq[Seq[SortOrder]] = Seq(order)

  override protected def doExecute(): RDD[InternalRow] = child.execute()

  override protected def withNewChildInternal(newChild: SparkPlan): SortedRowsExec =
    copy(child = newChild)
}
