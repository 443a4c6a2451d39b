// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import java.util.SplittableRandom
import java.util.{Comparator, HashMap, PriorityQueue}

import scala.jdk.CollectionConverters._

import org.apache.datasketches.frequencies.{ErrorType, ItemsSketch}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

import org.apache.spark.sql.changelog.plans.{RankFunction, RankStrategy, Ranking}

/**
 * Drops rows of hot partitions beyond the last rank within each task, before the shuffle.
 *
 * {{{
 *   first 2 by v, a is hot      in   a 5, b 9, a 3, a 7, a 4      out   b 9, a 3, a 4
 * }}}
 *
 * For other partitions, finding the first rows would cost more than shuffling every row. A sample of the task's
 * rows detects hot partitions. Without a hot partition the cost is negligible.
 */
private[rank] case class LimitHotPartitionsExec(layout: RankLayout, child: SparkPlan)
    extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numRowsLeftBehind" ->
      SQLMetrics.createMetric(sparkContext, "number of hot partition rows beyond the last rank"))

  override protected def doExecute(): RDD[InternalRow] = {
    val numLeftBehind = longMetric("numRowsLeftBehind")
    val columns = child.output
    child.execute().mapPartitionsWithIndexInternal { (index, rows) =>
      new HotPartitionsLimit(layout, columns, new KeySample(index), rows, numLeftBehind)
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): LimitHotPartitionsExec =
    copy(child = newChild)
}

private[rank] object LimitHotPartitionsExec {

  /** The highest last rank for which holding rows pays off. */
  private val MaxRank = 1000

  /**
   * Returns whether only the first rows of a partition matter. With an event time in the partition key, late
   * rows must still be counted.
   */
  def isOf(ranking: Ranking): Boolean =
    ranking.strategy == RankStrategy.AppendFast && ranking.function == RankFunction.RowNumber &&
      ranking.partition.nonEmpty && ranking.end >= 1 && ranking.end <= MaxRank &&
      !ranking.partition.exists(_.metadata.contains(EventTimeWatermark.delayKey))
}

/** The rows of a task without droppable rows of hot partitions. The best rows of hot partitions come last. */
private[rank] final class HotPartitionsLimit(
    layout: RankLayout,
    columns: Seq[Attribute],
    sample: KeySample,
    rows: Iterator[InternalRow],
    numLeftBehind: SQLMetric)
    extends Iterator[InternalRow] {
  import HotPartitionsLimit._

  private val partitionOf = UnsafeProjection.create(layout.key, columns)
  private lazy val toUnsafe = UnsafeProjection.create(columns, columns)
  private lazy val order: Comparator[InternalRow] =
    RowOrdering.create(layout.rowOrder, columns)
  private val hot = new HashMap[UnsafeRow, PriorityQueue[UnsafeRow]]
  private var untilLook = SampleSize
  private lazy val held = hot.values.iterator().asScala.flatMap(_.iterator().asScala)
  private var ahead: InternalRow = _

  override def hasNext: Boolean = {
    while (ahead == null && rows.hasNext) {
      val row = rows.next()
      if (!holds(row)) ahead = row
    }
    ahead != null || held.hasNext
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    if (ahead == null) held.next()
    else {
      val row = ahead
      ahead = null
      row
    }
  }

  /** Returns whether the row belongs to a hot partition, and is held or dropped. */
  private def holds(row: InternalRow): Boolean = {
    if (sample.isSampled()) look(row)
    !hot.isEmpty && {
      val best = hot.get(partitionOf(row))
      if (best != null) offer(best, row)
      best != null
    }
  }

  private def look(row: InternalRow): Unit = {
    sample.add(partitionOf(row))
    untilLook -= 1
    if (untilLook == 0) {
      untilLook = SampleSize
      sample.keysOf((sample.rows * MinShare).toLong).foreach { case (partition, _) =>
        hot.computeIfAbsent(partition, _ => new PriorityQueue[UnsafeRow](order.reversed()))
      }
    }
  }

  private def offer(best: PriorityQueue[UnsafeRow], row: InternalRow): Unit =
    if (best.size < layout.ranking.end) best.add(unsafe(row).copy())
    else {
      numLeftBehind += 1
      if (order.compare(row, best.peek()) < 0) {
        best.poll()
        best.add(unsafe(row).copy())
      }
    }

  private def unsafe(row: InternalRow): UnsafeRow = row match {
    case row: UnsafeRow => row
    case other => toUnsafe(other)
  }
}

private object HotPartitionsLimit {

  /**
   * The number of sampled rows before the next search for hot partitions. 64 times as many rows have then been
   * seen.
   */
  private val SampleSize = 64

  /** The minimum share of a task's rows in a hot partition. With a smaller share, too few rows can be dropped. */
  private val MinShare = 0.125
}

/**
 * Samples one in 64 rows of a task, and counts the most frequent keys of the sample in a sketch of fixed size.
 * The choice of rows is random, because keys may alternate regularly, and the same for each attempt.
 */
private[rank] final class KeySample(partition: Int) {
  import KeySample._

  private val random = new SplittableRandom(partition)
  private var untilNext = gap()
  private var keys: ItemsSketch[UnsafeRow] = _

  /** Moves to the next row. Returns whether the row is in the sample. If so, the caller must [[add]] the row's key. */
  def isSampled(): Boolean = {
    untilNext -= 1
    untilNext == 0
  }

  /** Counts the key of a sampled row. */
  def add(key: UnsafeRow): Unit = {
    untilNext = gap()
    if (keys == null) keys = new ItemsSketch[UnsafeRow](MaxKeys)
    keys.update(key.copy())
  }

  /** The number of sampled rows. */
  def rows: Long = if (keys == null) 0 else keys.getStreamLength

  /** Returns the keys with at least `leastRows` sampled rows, most frequent first, with an estimate of their number. */
  def keysOf(leastRows: Long): Seq[(UnsafeRow, Long)] =
    if (keys == null) Nil
    else
      keys
        .getFrequentItems(leastRows - 1, ErrorType.NO_FALSE_NEGATIVES)
        .toSeq
        .map(found => found.getItem -> found.getEstimate)

  private def gap(): Int = random.nextInt(1, 2 * KeySample.OneOf)
}

private[rank] object KeySample {

  /** The average number of rows per sampled row. */
  val OneOf = 64

  /** The size of the sketch. The sketch's error is below two percent of the rows. */
  private val MaxKeys = 256
}
