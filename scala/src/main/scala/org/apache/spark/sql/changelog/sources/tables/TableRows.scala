// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Cast}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.read.streaming.SparkDataStream

/**
 * TableRows: a batch of a table's rows, read when the batch is optimized. Spark also asks a source for batches that
 * never run. After optimization, unused columns are not read.
 *
 * @param read
 *   returns the rows as a batch plan
 */
case class TableRows(
    override val output: Seq[Attribute],
    read: () => LogicalPlan,
    stream: Option[SparkDataStream] = None)
    extends LeafNode
    with StreamSourceAwareLogicalPlan {

  override def isStreaming: Boolean = true

  override def withStream(stream: SparkDataStream): TableRows = copy(stream = Some(stream))

  override def getStream: Option[SparkDataStream] = stream

  override def computeStats(): Statistics = Statistics(conf.defaultSizeInBytes)

  override def simpleString(maxFields: Int): String =
    s"TableRows ${output.mkString("[", ", ", "]")}"

  /** Returns the rows as a batch plan. */
  def asBatchPlan: LogicalPlan = {
    val rows = stream.foldLeft(read()) { (plan, stream) =>
      plan.transformUp { case leaf: StreamSourceAwareLogicalPlan => leaf.withStream(stream) }
    }
    Project(
      output.zip(rows.output).map { case (column, found) =>
        // The comments of nested fields may have changed.
        val isSame = found.dataType == column.dataType
        val value = if (isSame) found else Cast(found, column.dataType)
        Alias(value, column.name)(exprId = column.exprId)
      },
      rows)
  }
}

/**
 * ReadTableRows: replaces [[TableRows]] by the rows of the batch, before optimization, and before sources move into
 * subqueries.
 */
object ReadTableRows extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.isInstanceOf[TableRows])) plan
    else plan.transformUp { case rows: TableRows => rows.asBatchPlan }
}
