// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.{Distribution, Partitioning}
import org.apache.spark.sql.execution.UnaryExecNode
import org.apache.spark.sql.execution.streaming.state.{
  KeyStateEncoderSpec,
  PrefixKeyScanStateEncoderSpec
}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.execution.{ChangelogStateWriter, RowsByKey}
import org.apache.spark.sql.changelog.identity.EntryPlacement

/** An operator that keeps the rows of its input by time, as [[TimedRows]], until something is due. */
private[time] trait TimedRowsWriter extends UnaryExecNode with ChangelogStateWriter {

  /** The columns rows are shuffled by; equal rows agree on them. */
  def placedBy: Seq[Attribute]

  /** The columns of a row, without its kind. */
  def columns: Seq[Attribute]

  /** The rows that a task's changes are about. */
  protected def netRows(kind: Option[Attribute]): NetRows =
    new NetRows(columns, kind, placedBy, child.output)

  /** When there is something to do again after the batch. */
  @transient protected lazy val nextTime: NextTime = {
    val next = new NextTime
    sparkContext.register(next)
    next
  }

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def requiredChildDistribution: Seq[Distribution] = Seq(clusteredBy(placedBy))

  override def requiredChildOrdering: Seq[Seq[SortOrder]] = Seq(RowsByKey.order(placedBy))

  override def stateKeySchema: StructType = TimedRows.keySchema(columns)

  override def stateValueSchema: StructType = TimedRows.valueSchema

  override def keyEncoder: KeyStateEncoderSpec =
    PrefixKeyScanStateEncoderSpec(stateKeySchema, numColsPrefixKey = 2)

  override def placement: EntryPlacement =
    EntryPlacement
      .byColumns(placedBy, columns, first = TimedRows.Head)
      .copy(form = if (notesTimes) EntryPlacement.TimedByRow else EntryPlacement.Timed)

  /** Whether it asks at which times a row is there ([[TimedRows.timesLike]]). */
  protected def notesTimes: Boolean = false

  /** Time, or the watermark, bounds it. */
  override protected lazy val ttls: Seq[Long] = Seq(0L)
}
