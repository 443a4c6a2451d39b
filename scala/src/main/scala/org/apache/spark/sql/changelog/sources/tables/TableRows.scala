// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Cast}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.read.streaming.SparkDataStream

/**
 * What a batch brings of a table, which is looked up when the batch is optimized: Spark also asks a
 * source for batches that it won't run, and columns that nobody reads are not read.
 *
 * @param read
 *   the rows, as a plan that is no stream
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

  /** The rows, as a plan that is no stream. */
  def atRest: LogicalPlan = {
    val rows = stream.foldLeft(read()) { (plan, stream) =>
      plan.transformUp { case leaf: StreamSourceAwareLogicalPlan => leaf.withStream(stream) }
    }
    Project(
      output.zip(rows.output).map { case (column, found) =>
        // a comment on a nested field may have come since
        val isSame = found.dataType == column.dataType
        val value = if (isSame) found else Cast(found, column.dataType)
        Alias(value, column.name)(exprId = column.exprId)
      },
      rows)
  }
}

/** Looks up what a batch brings of tables, before it is optimized and sources are in subqueries. */
object ReadTableRows extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.isInstanceOf[TableRows])) plan
    else plan.transformUp { case rows: TableRows => rows.atRest }
}
