// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.{
  KeyStateEncoderSpec, NoPrefixKeyStateEncoderSpec, PrefixKeyScanStateEncoderSpec, StateStore
}
import org.apache.spark.sql.types._
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.compat.RankLimit
import org.apache.spark.sql.changelog.execution.expiry.EntryTimes
import org.apache.spark.sql.changelog.execution.output.ChangelogDrainExec
import org.apache.spark.sql.changelog.execution.{
  EventTimeBound, RowOrder, RowsByKey, StateColumns, UnaryChangelogStateWriter
}
import org.apache.spark.sql.changelog.plans.{ChangelogRank, RankFunction, RankStrategy, Ranking}

/**
 * Keeps the best rows of each partition.
 *
 * {{{
 *   first 2 by v          in           out, with the rank              out, without
 *   a 1, a 3              +I a 2       -U a 3 #2, +U a 2 #2            -D a 3, +I a 2
 *   a 2, a 3              -D a 2       -U a 2 #1, +U a 3 #1, -D a 3 #2 -D a 2
 * }}}
 *
 *   - in: any changes, those of a partition together; with retractions also in rank order
 *   - out: the difference between the visible rows before and after the batch. If the rank is a column, or
 *     there is a single rank, the old and the new row of a rank become an update. Otherwise rows with an equal
 *     key do
 *   - state: the best rows of each partition, and the remaining rows if the input retracts; see [[RankLayout]]
 *   - law: per partition, the table has the rows with a rank within the bounds
 *
 * Rows that tie for `row_number` are ordered by their columns, so the order is the same in every batch. Ranks
 * are computed from scratch over the visible rows. `rank`, `dense_rank` and offsets therefore need no separate
 * code.
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

  override def placedBy: Seq[Attribute] = ranking.partition

  override def requiredChildOrdering: Seq[Seq[SortOrder]] = {
    ranking.strategy match {
      // sorted, so that every attempt at a batch finds the same first rows
      case RankStrategy.FirstCome | RankStrategy.Earliest | RankStrategy.Retract =>
        Seq(ranking.partition.map(SortOrder(_, Ascending)) ++ layout.rowOrder)
      case _ => Seq(RowsByKey.order(ranking.partition))
    }
  }

  override def timedColumns: Seq[Attribute] = ranking.partition

  override def emitsClosed: Boolean = ranking.strategy == RankStrategy.Earliest

  /** The watermark that makes the earliest row final. */
  override protected lazy val closingBound: Option[EventTimeBound] =
    if (!emitsClosed) None
    else EventTimeBound(ranking.order.map(_.child).collect { case c: Attribute => c }, batchTime)

  override def stateKeySchema: StructType = layout.keySchema

  override def stateValueSchema: StructType = layout.valueSchema

  override def keyEncoder: KeyStateEncoderSpec =
    if (layout.keepsOthers) PrefixKeyScanStateEncoderSpec(stateKeySchema, layout.keyColumns.size)
    else NoPrefixKeyStateEncoderSpec(stateKeySchema)

  override protected def entryTimes: Option[EntryTimes] = {
    val ofPartition = timesOfKey(layout.keyColumns)
    closingBound.fold(ofPartition)(bound => Some(EarliestRows.times(layout, bound, ofPartition)))
  }

  override protected def isNoOpWithoutInput: Boolean =
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
        def due = expiredEntries(store, closingBound)
        new EarliestRows(layout, child.output, store, certain, due, changeMetrics)
      case _ =>
        val unmatched = unmatchedRetractions()
        new RankChanges(layout, child.output, store, inTime, changeMetrics, unmatched)
    }
    CompletionIterator[InternalRow, Iterator[InternalRow]](changes, removeExpired(store))
  }

  override protected def storedResult(store: StateStore): Iterator[InternalRow] =
    new StoredRanks(layout, store).rows

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogRankExec =
    copy(child = newChild)
}

/** Reads the visible rows of all partitions from the state. */
private[rank] final class StoredRanks(layout: RankLayout, store: StateStore) {
  private val state = new RankStateManager(layout, store)
  private val head = RankHead(layout)
  private val outputOf = new RankOutput(layout)
  private val numKeyColumns = layout.keyColumns.size
  private val partitionOf =
    UnsafeProjection.create(layout.keyColumns.zipWithIndex.map { case (column, ordinal) =>
      BoundReference(ordinal, column.dataType, nullable = true)
    })

  /** The visible rows, as inserts. */
  def rows: Iterator[InternalRow] = store
    .iterator()
    .filter(entry => !layout.keepsOthers || entry.key.isNullAt(numKeyColumns))
    .flatMap { entry =>
      val partition = partitionOf(entry.key)
      state.load(partition, head)
      head.shown().asScala.iterator.map(outputOf(partition, _))
    }
}

/** Plans a [[ChangelogRank]]. */
object PlanChangelogRank {

  def apply(
      rank: ChangelogRank,
      state: StatefulOperatorStateInfo,
      child: SparkPlan): SparkPlan = {
    val ranking = rank.ranking
    val isLimit = ranking.partition.isEmpty && ranking.end >= 1 && ranking.end <= Int.MaxValue
    def layout = RankLayout(ranking, rank.columns)
    val rows =
      if (isLimit) limited(layout, child)
      else if (LimitHotPartitionsExec.isOf(ranking)) LimitHotPartitionsExec(layout, child)
      else child
    ChangelogRankExec(ranking, rank.columns, rank.outputKind, Some(state), rows)
  }

  /** For a LIMIT, which places all rows in a single task, drops rows beyond the limit before the shuffle. */
  private def limited(layout: RankLayout, input: SparkPlan): SparkPlan = {
    import layout.ranking
    val end = ranking.end.toInt
    // a limit stops reading early, but operators with state must be read to the end
    val child = ChangelogDrainExec(input)
    ranking.strategy match {
      // rows without columns, or without comparable columns
      case RankStrategy.FirstCome if layout.rowOrder.isEmpty => input
      case RankStrategy.FirstCome | RankStrategy.AppendFast =>
        val order = ranking.function match {
          case RankFunction.RowNumber => layout.rowOrder
          case _ => ranking.order
        }
        RankLimit(order, function(ranking), end, child)
      case _ => input
    }
  }

  private def function(ranking: Ranking): Expression = {
    val order = ranking.order.map(_.child)
    ranking.function match {
      case RankFunction.RowNumber => RowNumber()
      case RankFunction.RankWithGaps => Rank(order)
      case RankFunction.DenseRank => DenseRank(order)
    }
  }
}

/**
 * The state columns of a partition's rows, and their order.
 *
 * {{{
 *   append-fast, update-fast
 *     key    partition columns            value  rows, counts
 *   retract: the best rows, and an entry for each remaining row
 *     key    partition columns | NULL     value  rows, counts, number of remaining rows
 *            partition columns | row             NULL, NULL, count
 *   earliest
 *     key    partition columns            value  row, NULL after emission
 *   first-come
 *     key    partition columns            value  number of input rows
 * }}}
 * Without partition columns, the key is a constant. `counts` is NULL if each row has a single copy.
 *
 * @param columns
 *   the columns of an input row
 */
final case class RankLayout(ranking: Ranking, columns: Seq[Attribute]) {
  import ranking.{order, partition, strategy}

  private val all = AttributeReference("table", IntegerType, nullable = false)()

  /** The columns stored for a row, without the partition columns in the key. */
  val rowColumns: Seq[Attribute] = {
    val ordered = AttributeSet(order.flatMap(_.references))
    columns.filter(column => !isPartition(column) || ordered.contains(column))
  }

  val rowType: StructType = StateColumns(rowColumns.map(column => column.name -> column.dataType))

  private def isPartition(column: Attribute): Boolean =
    partition.exists(_.exprId == column.exprId)

  /** The columns of a partition's key in state. */
  val keyColumns: Seq[Attribute] = if (partition.isEmpty) Seq(all) else partition

  /** The values of [[keyColumns]], over the columns of a row. */
  val key: Seq[Expression] = if (partition.isEmpty) Seq(Literal(0)) else partition

  /** The order of a partition's rows, with ties broken. */
  val rowOrder: Seq[SortOrder] = RowOrder(order, rowColumns)

  val keepsOthers: Boolean = strategy == RankStrategy.Retract

  def keySchema: StructType = {
    val others = if (keepsOthers) Seq(AttributeReference("row", rowType)()) else Nil
    StateColumns.ofKey(keyColumns ++ others)
  }

  def valueSchema: StructType = strategy match {
    case RankStrategy.FirstCome => StateColumns(Seq("count" -> LongType))
    case RankStrategy.Earliest => StateColumns(Seq("row" -> rowType))
    case _ =>
      val head = Seq(
        "rows" -> ArrayType(rowType, containsNull = false),
        "counts" -> ArrayType(LongType, containsNull = false))
      StateColumns(head ++ (if (keepsOthers) Seq("count" -> LongType) else Nil))
  }
}
