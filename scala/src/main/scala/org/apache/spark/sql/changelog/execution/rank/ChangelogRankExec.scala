// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.{KeyStateEncoderSpec, NoPrefixKeyStateEncoderSpec, PrefixKeyScanStateEncoderSpec, StateStore}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.execution.expiry.EntryTimes
import org.apache.spark.sql.changelog.execution.{EventTimeBound, RowsByKey, UnaryChangelogStateWriter}
import org.apache.spark.sql.changelog.identity.EntryPlacement
import org.apache.spark.sql.changelog.plans.{RankStrategy, Ranking}

/**
 * Keeps the best rows of each partition.
 *
 * {{{
 *   first 2 by v          in           out, with the rank              out, without
 *   a 1, a 3              +I a 2       -U a 3 #2, +U a 2 #2            -D a 3, +I a 2
 *   a 2, a 3              -D a 2       -U a 2 #1, +U a 3 #1, -D a 3 #2 -D a 2
 * }}}
 *
 *   - in: any changes, those of a partition together; in the order of ranks where some are taken back
 *   - out: what differs between the rows shown before and after the batch. A rank's old and new row
 *     are an update where the rank is shown or there is only one, else rows that agree on a key are
 *   - state: the best rows of each partition, and all others where rows go; see [[RankLayout]]
 *   - law: per partition, the rows whose rank lies within the bounds are in the table
 *
 * Rows that tie for `row_number` are taken in the order of their columns, so the same in every
 * batch. Ranks are computed from scratch over the rows shown, which is what makes `rank`,
 * `dense_rank` and offsets the same thing.
 */
case class ChangelogRankExec(
    ranking: Ranking,
    columns: Seq[Attribute],
    outputKind: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    child: SparkPlan)
    extends UnaryChangelogStateWriter {
  private val layout = RankLayout(ranking, columns)

  override def shortName: String = "changelogRank"

  override def simpleString(maxFields: Int): String = {
    val partition = truncatedString(ranking.partition, "[", ", ", "]", maxFields)
    val order = truncatedString(ranking.order, "[", ", ", "]", maxFields)
    s"$nodeName(${ranking.function} ${ranking.start} to ${ranking.end}, partition=$partition, " +
      s"order=$order, strategy=${ranking.strategy}, updates=${ranking.updateKind})"
  }

  override def output: Seq[Attribute] = (columns ++ ranking.number) :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(ranking.number.toSeq :+ outputKind)

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def requiredChildDistribution: Seq[Distribution] =
    Seq(clusteredBy(ranking.partition))

  override def requiredChildOrdering: Seq[Seq[SortOrder]] = {
    ranking.strategy match {
      // the first rows of a batch are the same, in whatever order an attempt reads them
      case RankStrategy.FirstCome | RankStrategy.Earliest | RankStrategy.Retract =>
        Seq(ranking.partition.map(SortOrder(_, Ascending)) ++ layout.rowOrder)
      case _ => Seq(RowsByKey.order(ranking.partition))
    }
  }

  override def timedColumns: Seq[Attribute] = ranking.partition

  override def emitsClosed: Boolean = ranking.strategy == RankStrategy.Earliest

  /** The watermark that makes the earliest row certain. */
  override protected lazy val closingBound: Option[EventTimeBound] =
    if (!emitsClosed) None
    else EventTimeBound(ranking.order.map(_.child).collect { case c: Attribute => c }, batchTime)

  override def stateKeySchema: StructType = layout.keySchema

  override def stateValueSchema: StructType = layout.valueSchema

  override def placement: EntryPlacement =
    EntryPlacement.byColumns(ranking.partition, first = 0)

  override def keyEncoder: KeyStateEncoderSpec =
    if (layout.keepsOthers) PrefixKeyScanStateEncoderSpec(stateKeySchema, layout.keyColumns.size)
    else NoPrefixKeyStateEncoderSpec(stateKeySchema)

  override protected def entryTimes: Option[EntryTimes] = {
    val ofPartition = timesOfKey(layout.keyColumns)
    closingBound.fold(ofPartition)(bound => Some(EarliestRows.times(layout, bound, ofPartition)))
  }

  override protected def restsWithoutRows: Boolean =
    eventTimeBound.isEmpty && closingBound.isEmpty

  override protected def processPartition(
      store: StateStore,
      rows: Iterator[InternalRow]): Iterator[InternalRow] = {
    val inTime = withoutLate(rows, child.output, eventTimeBound)
    val changes = ranking.strategy match {
      case RankStrategy.FirstCome =>
        new FirstRows(layout, child.output, store, inTime, changeMetrics)
      case RankStrategy.Earliest =>
        val certain = withoutLate(inTime, child.output, closingBound)
        def due = entriesOver(store, closingBound)
        new EarliestRows(layout, child.output, store, certain, due, changeMetrics)
      case _ =>
        val unmatched = unmatchedRetractions()
        new RankChanges(layout, child.output, store, inTime, changeMetrics, unmatched)
    }
    CompletionIterator[InternalRow, Iterator[InternalRow]](changes, removeOver(store))
  }

  override protected def storedResult(store: StateStore): Iterator[InternalRow] =
    new StoredRanks(layout, store).rows

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogRankExec =
    copy(child = newChild)
}
