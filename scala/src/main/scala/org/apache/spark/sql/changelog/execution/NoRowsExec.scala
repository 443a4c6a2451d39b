// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.LeafExecNode

import org.apache.spark.sql.changelog.compat.SparkRDDs

/** Stands for a shuffle to which nothing comes in a batch: its partitions, without rows. */
case class NoRowsExec(
    output: Seq[Attribute],
    override val outputPartitioning: Partitioning,
    override val outputOrdering: Seq[SortOrder])
    extends LeafExecNode {

  override protected def doExecute(): RDD[InternalRow] =
    SparkRDDs.empty(sparkContext, outputPartitioning.numPartitions)
}
