// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.dryrun

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamingExecutionRelation

/** What a dry run reads in place of the sources of a query. */
sealed trait Sample {

  /** The changes of a query, over the sample. */
  private[dryrun] def in(session: SparkSession, changes: LogicalPlan): LogicalPlan
}

object Sample {

  /** Changes that are written down, as [[SampleText]] reads them. */
  case class Changes(text: String) extends Sample {
    override private[dryrun] def in(session: SparkSession, changes: LogicalPlan): LogicalPlan =
      new WrittenChanges(session, SampleText(text))(changes)
  }

  /** So many rows of each source, those that come first. Each batch has one of each. */
  case class FirstRows(count: Int) extends Sample {
    override private[dryrun] def in(session: SparkSession, changes: LogicalPlan): LogicalPlan =
      new RowsOfSources(session, count)(changes)
  }

  /** A stream of rows, a batch after the other, in the columns of what it stands for. */
  private[dryrun] def stream(
      session: SparkSession,
      columns: Seq[Attribute],
      batches: IndexedSeq[Seq[InternalRow]]): LogicalPlan =
    StreamingExecutionRelation(new SampleSource(session, columns, batches), columns, None)(
      session)
}
