// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.metric.SQLMetric

import org.apache.spark.sql.changelog.execution.{ChangeMetrics, UnmatchedRetractions}

/** What the processor of an operator is run with: neither a session nor a plan. */
private[changelog] trait ProcessorTest {

  protected def newMetric(): SQLMetric = new SQLMetric("sum")

  protected def newMetrics(): ChangeMetrics =
    ChangeMetrics(newMetric(), newMetric(), newMetric(), newMetric(), newMetric(), newMetric())

  /** Counts retractions of rows that were never given. */
  protected final class CountUnmatched extends UnmatchedRetractions {
    var count = 0L

    override def apply(more: Long, key: => String): Unit = count += more
  }

  /** Makes rows with columns such as these. */
  protected def rowsOf(columns: Seq[Attribute]): Seq[Any] => UnsafeRow = {
    val project = UnsafeProjection.create(columns, columns)
    values => project(InternalRow.fromSeq(values)).copy()
  }
}
