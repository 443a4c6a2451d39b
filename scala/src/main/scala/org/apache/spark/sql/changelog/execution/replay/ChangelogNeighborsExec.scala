// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import java.util.Comparator

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.execution.{GroupedIterator, SparkPlan}
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution._
import org.apache.spark.sql.changelog.execution.join.JoinLayout
import org.apache.spark.sql.changelog.execution.join.temporal._
import org.apache.spark.sql.changelog.identity.EntryPlacement

/**
 * Keeps the rows of each partition in order, and emits the old and the new rows around changed rows.
 *
 * {{{
 *   state              in        out, reach 1
 *   a 1, a 3, … a 90   +I a 2    0 +I a 1, 0 +I a 2, 0 +I a 3, 0 +I a 4      the new segment 0
 *                                0 -D a 1,           0 -D a 3, 0 -D a 4      the old segment 0
 * }}}
 *
 *   - in: any changes, sorted by partition and order
 *   - out: for each changed row, the rows up to twice the reach away, in segments: with kind `+I` after the
 *     batch, and with kind `-D` before it. Segments do not overlap
 *   - state: the rows of each partition in order, divided into runs; see [[NeighborsLayout]]
 *   - law: functions of the rows up to the reach away, computed over each segment and kind of `out`, give the
 *     changes of their results as the difference of `+I` and `-D`. Rows further away than the reach from every
 *     changed row have incomplete neighbors and equal results in both kinds
 */
case class ChangelogNeighborsExec(
    layout: NeighborsLayout,
    reach: Int,
    segment: Attribute,
    outputKind: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    child: SparkPlan)
    extends UnaryChangelogStateWriter {

  override def shortName: String = "changelogNeighbors"

  override def simpleString(maxFields: Int): String = {
    val partition = truncatedString(layout.partition, "[", ", ", "]", maxFields)
    val order = truncatedString(layout.order, "[", ", ", "]", maxFields)
    s"$nodeName(partition=$partition, order=$order, reach=$reach)"
  }

  override def output: Seq[Attribute] = layout.columns :+ segment :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(Seq(segment, outputKind))

  override def outputOrdering: Seq[SortOrder] =
    (layout.partition :+ segment :+ outputKind).map(SortOrder(_, Ascending)) ++ layout.order

  override def placedBy: Seq[Attribute] = layout.partition

  override def requiredChildOrdering: Seq[Seq[SortOrder]] =
    Seq(layout.partition.map(SortOrder(_, Ascending)) ++ layout.order)

  override def stateKeySchema: StructType = layout.keySchema

  override def stateValueSchema: StructType = layout.valueSchema

  // the state key's first column is the table
  override def placement: EntryPlacement = EntryPlacement.byColumns(placedBy, first = 1)

  override protected lazy val ttls: Seq[Long] = Seq(0L)

  override protected def isNoOpWithoutInput: Boolean = true

  override protected def processPartition(
      store: StateStore,
      rows: Iterator[InternalRow]): Iterator[InternalRow] = {
    val order = layout.comparator()
    val runs = runsIn(store, order)
    val neighbors = new Neighbors(runs, margin = 2 * reach)
    val changes = new OrderedChanges(layout, child.output, order)
    val keyOf = UnsafeProjection.create(layout.partition, child.output)
    val segments = new Segments
    GroupedIterator(rows, layout.partition, child.output).flatMap { case (_, group) =>
      val ofGroup = group.buffered
      val key = keyOf(ofGroup.head).copy()
      changes.begin(ofGroup)
      runs.load(key, changes)
      val found = neighbors.segments()
      runs.save()
      found.iterator.zipWithIndex.flatMap { case (rows, number) =>
        segments(number, rows, _.after, RowKind.Insert) ++
          segments(number, rows, _.before, RowKind.Delete)
      }
    }
  }

  private def runsIn(store: StateStore, order: Comparator[UnsafeRow]): ChangedRuns = {
    val unmatched = unmatchedRetractions()
    val rows = new OrderedRows(layout, layout, store, rewritesDirectory = false, changeMetrics)
    new ChangedRuns(
      rows,
      order,
      _ => true,
      (row, before, after) =>
        unmatched.note(before, after, StateColumns.keyText(layout.columns, row)))
  }

  /** Returns all rows of each partition as one segment, in the partition order of the input. */
  override protected def storedResult(store: StateStore): Iterator[InternalRow] = {
    val runs = runsIn(store, layout.comparator())
    val segments = new Segments
    val keyOf =
      UnsafeProjection.create(layout.rowsKey.map(part => part.copy(ordinal = part.ordinal + 1)))
    val keys = DistinctRows(
      store.iterator().filter(_.key.getByte(0) == 0).map(entry => keyOf(entry.key)))
    val byKey = layout.partition.map(SortOrder(_, Ascending))
    val order = GenerateOrdering.generate(byKey, layout.partition)
    keys.sortWith(order.lt).iterator.flatMap { key =>
      runs.view(key)
      (0 until runs.size).iterator.flatMap { number =>
        val rows = Neighbors.rowsOf(runs(number)).toSeq
        segments(0, rows, _.after, RowKind.Insert)
      }
    }
  }

  /** Emits the rows of segments. */
  private class Segments {
    private val rowOf = UnsafeProjection.create(
      layout.columns :+ Literal(0) :+ Literal(RowKind.Insert),
      layout.columns)
    private val (segmentOrdinal, kindOrdinal) = (output.size - 2, output.size - 1)
    private val metrics = changeMetrics

    def apply(
        number: Int,
        rows: Seq[Neighbor],
        copies: Neighbor => Long,
        kind: Byte): Iterator[InternalRow] = rows.iterator.flatMap { neighbor =>
      val count = copies(neighbor)
      if (count == 0) Iterator.empty
      else {
        val row = rowOf(neighbor.row)
        row.setInt(segmentOrdinal, number)
        row.setByte(kindOrdinal, kind)
        Iterator.fill(count.toInt) {
          metrics.emit(kind)
          row
        }
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogNeighborsExec =
    copy(child = newChild)
}

/** A row with its number of visible copies before and after a batch. */
private[replay] final class Neighbor(val row: UnsafeRow, val before: Long, val after: Long) {
  def isVisible: Boolean = before > 0 || after > 0

  def isChanged: Boolean = before != after
}

/**
 * Finds the rows around the changed rows of a partition.
 *
 * @param margin
 *   the number of unchanged rows on each side of a changed row
 */
private[replay] final class Neighbors(runs: ChangedRuns, margin: Int) {

  /** Returns the segments of the loaded partition, in order. */
  def segments(): Seq[Seq[Neighbor]] = {
    val found = new mutable.ArrayBuffer[Seq[Neighbor]]
    var next = 0
    runs.changed.toArray.foreach { first =>
      if (first >= next) {
        val rows = mutable.ArrayBuffer.from(rowsBefore(first))
        var run = first
        // two changes with fewer rows in between share a segment
        var numUnchanged = 0
        while (run == first || run < runs.size && numUnchanged < 2 * margin) {
          val visible = Neighbors.rowsOf(runs(run))
          numUnchanged = if (runs.isChanged(run)) 0 else numUnchanged + visible.size
          rows ++= visible
          run += 1
        }
        next = run
        found ++= split(rows)
      }
    }
    found.toSeq
  }

  private def rowsBefore(run: Int): Seq[Neighbor] = {
    var rows = Seq.empty[Neighbor]
    var before = run - 1
    while (before >= 0 && rows.size < margin) {
      rows = Neighbors.rowsOf(runs(before)) ++ rows
      before -= 1
    }
    rows
  }

  private def split(rows: mutable.ArrayBuffer[Neighbor]): Seq[Seq[Neighbor]] = {
    val spans = new mutable.ArrayBuffer[(Int, Int)]
    rows.indices.filter(rows(_).isChanged).foreach { index =>
      val from = math.max(0, index - margin)
      val until = math.min(rows.size, index + margin + 1)
      if (spans.nonEmpty && spans.last._2 >= from) {
        spans(spans.size - 1) = (spans.last._1, until)
      } else spans += (from -> until)
    }
    spans.map { case (from, until) => rows.slice(from, until).toSeq }.toSeq
  }
}

private[replay] object Neighbors {

  /** Returns the visible rows of a run. After an unmatched retraction, a row has no visible copy. */
  def rowsOf(run: ChangedRun): Seq[Neighbor] =
    run.rows.indices
      .map { index =>
        new Neighbor(
          run.rows(index),
          math.max(0L, run.before(index)),
          math.max(0L, run.after(index)))
      }
      .filter(_.isVisible)
}

/**
 * The state columns of the rows of each partition, in order and divided into runs.
 *
 * {{{
 *   key    table, partition columns, run         value  rows, counts
 *   of a run        0, its number                       rows, in order, and the copies of each
 *   of a directory  1, 0                                the first row of each run, and the runs' numbers
 * }}}
 * A single run has number 0 and needs no directory. `counts` is NULL if each row has a single copy.
 *
 * @param order
 *   the order of rows, including all columns that can be ordered
 */
final case class NeighborsLayout(
    partition: Seq[Attribute],
    columns: Seq[Attribute],
    kind: Option[Attribute],
    order: Seq[SortOrder])
    extends OrderedLayout
    with OrderedSide {

  override def number: Int = 0

  override def numSides: Int = 1

  /** Returns the whole storage order. */
  def comparator(): Comparator[UnsafeRow] = RowOrder.total(RowOrdering.create(order, columns))

  val keySchema: StructType = {
    val key = partition.map(part => part.name -> JoinLayout.plain(part.dataType))
    StateColumns((("table" -> ByteType) +: key) :+ ("run" -> LongType))
  }

  override val valueSchema: StructType = StateColumns(
    Seq(
      "rows" -> ArrayType(JoinLayout.struct(columns), containsNull = false),
      "counts" -> ArrayType(LongType, containsNull = false)))

  override val rowsKey: Seq[BoundReference] =
    partition.zipWithIndex.map { case (part, index) =>
      BoundReference(index, JoinLayout.plain(part.dataType), nullable = true)
    }
}
