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
 * Leaves behind rows that can't be shown, of the partitions that many of a task's rows are of, before all
 * rows of a partition meet in one task.
 *
 * {{{
 *   first 2 by v, a is hot      in   a 5, b 9, a 3, a 7, a 4      out   b 9, a 3, a 4
 * }}}
 *
 * Of other partitions it would cost more to look for the first rows than to send all. Which are hot is seen
 * as rows come, in a sample; so it costs next to nothing where none is.
 */
private[rank] case class LimitHotPartitionsExec(layout: RankLayout, child: SparkPlan)
    extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override lazy val metrics: Map[String, SQLMetric] = Map("numRowsLeftBehind" ->
    SQLMetrics.createMetric(sparkContext, "number of rows of hot partitions that can't be shown"))

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

  /** The last rank up to which it pays to hold rows. */
  private val MostRows = 1000

  /** Whether the first of some rows of a partition are all that matters of them. Late rows must be counted. */
  def isOf(ranking: Ranking): Boolean =
    ranking.strategy == RankStrategy.AppendFast && ranking.function == RankFunction.RowNumber &&
      ranking.partition.nonEmpty && ranking.end >= 1 && ranking.end <= MostRows &&
      !ranking.partition.exists(_.metadata.contains(EventTimeWatermark.delayKey))
}

/** The rows of a task without those of hot partitions that can't be shown; what is left of these comes last. */
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

  /** Whether the row is of a hot partition: it is held, or left behind. */
  private def holds(row: InternalRow): Boolean = {
    if (sample.takesNext()) look(row)
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
      sample.keysOf((sample.rows * LeastShare).toLong).foreach { case (partition, _) =>
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

  /** So many rows must have been looked at, 64 times as many seen, before any partition is taken for hot. */
  private val SampleSize = 64

  /** Of fewer rows, those that could be left behind are too few. */
  private val LeastShare = 0.125
}

/**
 * Looks at one of 64 rows of a task, and counts those of the keys that most of them have in a sketch,
 * which is small whatever the keys are. Which rows it looks at is chance, as rows may come in turns, and the same
 * for each attempt.
 */
private[rank] final class KeySample(partition: Int) {
  import KeySample._

  private val random = new SplittableRandom(partition)
  private var untilNext = gap()
  private var keys: ItemsSketch[UnsafeRow] = _

  /** Whether the row at hand is to be looked at: then its key must be added. */
  def takesNext(): Boolean = {
    untilNext -= 1
    untilNext == 0
  }

  /** Counts the row at hand. */
  def add(key: UnsafeRow): Unit = {
    untilNext = gap()
    if (keys == null) keys = new ItemsSketch[UnsafeRow](MostKeys)
    keys.update(key.copy())
  }

  /** How many rows were looked at. */
  def rows: Long = if (keys == null) 0 else keys.getStreamLength

  /** The keys that at least so many of these have, the most frequent first, and about how many do. */
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

  /** One of so many rows is looked at. */
  val OneOf = 64

  /** So large a sketch errs by less than two percent of the rows. */
  private val MostKeys = 256
}
