// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.dryrun

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.catalyst.types.DataTypeUtils.fromAttributes
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.connector.read.streaming.{Offset => AnyOffset, ReadLimit}
import org.apache.spark.sql.execution.streaming.Offset
import org.apache.spark.sql.execution.streaming.runtime.LongOffset
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame => AnyDataFrame}

import org.apache.spark.sql.changelog.sources.LatestOffsetSource

/**
 * Gives the rows of a sample, batch by batch. Each batch of the query takes one more from each of its
 * sources, so that they go together.
 *
 * @param batches
 *   the rows of each, as many as the other sources have
 */
private[dryrun] class SampleSource(
    session: SparkSession,
    columns: Seq[Attribute],
    batches: IndexedSeq[Seq[InternalRow]])
    extends LatestOffsetSource {

  override val schema: StructType = fromAttributes(columns)

  override def prepareForTriggerAvailableNow(): Unit = ()

  override def latestOffset(start: AnyOffset, limit: ReadLimit): AnyOffset =
    LongOffset(batches.size.toLong.min(Option(start).fold(0L)(numberOf) + 1))

  override def deserializeOffset(json: String): AnyOffset = LongOffset(json.toLong)

  override def getBatch(start: Option[Offset], end: Offset): AnyDataFrame = {
    val rows = batches.slice(start.fold(0L)(numberOf).toInt, numberOf(end).toInt).flatten
    Dataset.ofRows(session, LocalRelation(columns, rows, isStreaming = true))
  }

  override def stop(): Unit = ()

  override def toString: String = "sample"

  private def numberOf(offset: AnyOffset): Long = offset.json.toLong
}
