// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.status

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics}
import org.apache.spark.sql.execution.{LeafExecNode, LocalTableScanExec, SparkPlan, SparkStrategy}

/** The rows of `changelog_status()`, as they are when a query is run that reads them. */
private[status] case class StatusRows(output: Seq[Attribute])
    extends LeafNode
    with MultiInstanceRelation {

  override def newInstance(): StatusRows = copy(output.map(_.newInstance()))

  override def computeStats(): Statistics = Statistics(sizeInBytes = 10000)
}

private[status] case class StatusRowsExec(output: Seq[Attribute]) extends LeafExecNode {

  private lazy val now: SparkPlan = LocalTableScanExec(output, StatusColumns.rows, None)

  override def executeCollect(): Array[InternalRow] = now.executeCollect()

  override protected def doExecute(): RDD[InternalRow] = now.execute()
}

/** Plans `changelog_status()`. */
object StatusStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case StatusRows(output) => StatusRowsExec(output) :: Nil
    case _ => Nil
  }
}
