// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import java.util.{ArrayDeque, Comparator}

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.{ByteType, LongType, StructType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.{ChangeMetrics, SignedRow, SignedRows}

/**
 * Stores the rows of a side and key in order, divided into runs that are read and written as a whole.
 * Finding a row thus reads only a directory of runs and a single run.
 *
 * Call for each join key: [[load]], then read and rewrite runs, and finally [[save]].
 *
 * @param rewritesDirectory
 *   whether the directory is written with every run, so that its TTL does not end earlier
 */
private[execution] final class OrderedRows[Side <: OrderedSide](
    layout: OrderedLayout,
    val side: Side,
    store: StateStore,
    rewritesDirectory: Boolean,
    metrics: ChangeMetrics) {
  private val numColumns = side.columns.size
  private val keyOf = UnsafeProjection.create(
    BoundReference(0, ByteType, nullable = false) +:
      layout.rowsKey.map(part => part.copy(ordinal = part.ordinal + 1)) :+
      BoundReference(layout.rowsKey.size + 1, LongType, nullable = false))
  private val valueOf =
    UnsafeProjection.create(layout.valueSchema.zipWithIndex.map { case (field, ordinal) =>
      BoundReference(ordinal, field.dataType, nullable = true)
    })
  private val table = new GenericInternalRow(1)
  private val number = new GenericInternalRow(1)
  private val tableAndKey = new JoinedRow
  private val keyRow = new JoinedRow
  private val valueRow = new GenericInternalRow(layout.numSides + 1)

  private var joinKey: InternalRow = _
  private val bounds = new mutable.ArrayBuffer[UnsafeRow]
  private val numbers = new mutable.ArrayBuffer[Long]
  private var isListed = false
  private var isChanged = false

  /** Loads the directory of the next join key. */
  def load(key: InternalRow): Unit = {
    joinKey = key
    bounds.clear()
    numbers.clear()
    isChanged = false
    val directory = store.get(stateKey(side.number + layout.numSides, 0))
    isListed = directory != null
    if (isListed) {
      val record = directory.copy()
      val firsts = record.getArray(side.number)
      val listed = record.getArray(layout.numSides)
      (0 until firsts.numElements()).foreach { index =>
        bounds += rowAt(firsts, index)
        numbers += listed.getLong(index)
      }
    } else if (store.get(stateKey(side.number, 0)) != null) {
      bounds += null
      numbers += 0L
    }
  }

  def numRuns: Int = numbers.size

  /** Returns a row such that no row of this run or a later run is before it. The first run has no lower bound. */
  def bound(run: Int): UnsafeRow = bounds(run)

  def read(run: Int): SortedRun = {
    val value = store.get(stateKey(side.number, numbers(run)))
    // an old run may have expired
    if (value == null) SortedRun.empty
    else {
      val record = value.copy()
      val rows = record.getArray(side.number)
      val size = rows.numElements()
      val counts =
        if (record.isNullAt(layout.numSides)) Array.fill(size)(1L)
        else record.getArray(layout.numSides).toLongArray()
      new SortedRun(Array.tabulate(size)(rowAt(rows, _)), counts)
    }
  }

  /** Starts to write the replacement of a run, or a new run at the end. */
  def rewrite(run: Int): Rewrite = new Rewrite(run)

  def remove(run: Int): Unit = {
    store.remove(stateKey(side.number, numbers(run)))
    metrics.removed += 1
    numbers.remove(run)
    bounds.remove(run)
    isChanged = true
  }

  /** Writes the directory of runs. */
  def save(): Unit =
    if (isChanged) {
      val isNeeded = numbers.size > 1 || numbers.headOption.exists(_ != 0)
      if (isNeeded) {
        // the first run's bound is not used
        if (bounds.head == null) bounds(0) = bounds(1)
        put(side.number + layout.numSides, 0, bounds, new GenericArrayData(numbers.toArray))
      } else if (isListed) {
        store.remove(stateKey(side.number + layout.numSides, 0))
        metrics.removed += 1
      }
    }

  private def rowAt(rows: ArrayData, index: Int): UnsafeRow =
    rows.getStruct(index, numColumns).asInstanceOf[UnsafeRow]

  private def stateKey(tableNumber: Int, run: Long): UnsafeRow = {
    table.update(0, tableNumber.toByte)
    number.update(0, run)
    keyOf(keyRow(tableAndKey(table, joinKey), number))
  }

  private def put(
      tableNumber: Int,
      run: Long,
      rows: mutable.ArrayBuffer[UnsafeRow],
      counts: ArrayData): Unit = {
    valueRow.update(side.number, new GenericArrayData(rows.toArray[Any]))
    valueRow.update(layout.numSides, counts)
    store.put(stateKey(tableNumber, run), valueOf(valueRow))
    metrics.updated += 1
  }

  /** Writes the rows of a run, added in order, and divides them if there are too many. */
  final class Rewrite(run: Int) {
    private val isNew = run == numbers.size
    private val rows = new mutable.ArrayBuffer[UnsafeRow]
    private val counts = new mutable.ArrayBuffer[Long]
    private var numWritten = 0

    def add(row: UnsafeRow, count: Long): Unit = {
      if (rows.size == OrderedRows.RunSize) flush()
      rows += row
      counts += count
    }

    /** Returns the number of runs written. */
    def finish(): Int = {
      if (rows.nonEmpty) flush()
      if (numWritten == 0 && !isNew) remove(run)
      numWritten
    }

    private def flush(): Unit = {
      val at = run + numWritten
      if (numWritten > 0 || isNew) {
        val free = if (numbers.isEmpty) 0L else numbers.max + 1
        numbers.insert(at, free)
        bounds.insert(at, if (at == 0) null else rows.head)
        isChanged = true
      }
      val counted = if (counts.forall(_ == 1)) null else new GenericArrayData(counts.toArray)
      put(side.number, numbers(at), rows, counted)
      if (rewritesDirectory) isChanged = true
      numWritten += 1
      rows.clear()
      counts.clear()
    }
  }
}

private[execution] object OrderedRows {

  /** The maximum number of rows in a run. */
  val RunSize = 128
}

/** The state columns of rows in order, of one side or of several. */
private[execution] trait OrderedLayout {

  /** The key columns of the rows, between the number of the table and the number of the run. */
  def rowsKey: Seq[BoundReference]

  /** The rows of each side, then the number of copies of each row. */
  def valueSchema: StructType

  def numSides: Int
}

/** One side of rows in order. */
private[execution] trait OrderedSide {
  def number: Int

  /** The columns of a row, without row kind. */
  def columns: Seq[Attribute]

  /** The row kind of changes, or None for an insert-only input. */
  def kind: Option[Attribute]

  /** The part of the storage order that Spark can sort by. */
  def order: Seq[SortOrder]
}

/** Rows in order, with the number of copies of each. */
private[execution] final class SortedRun(val rows: Array[UnsafeRow], val counts: Array[Long]) {
  def size: Int = rows.length
}

private[execution] object SortedRun {
  val empty: SortedRun = new SortedRun(Array.empty, Array.empty)
}

/**
 * Nets the changes of a side and join key, which arrive in order.
 *
 * @param input
 *   the columns of the changes, including the row kind
 */
private[execution] final class OrderedChanges(
    side: OrderedSide,
    input: Seq[Attribute],
    order: Comparator[UnsafeRow]) {
  private val columnsOf = UnsafeProjection.create(side.columns, input)
  private val sorted = RowOrdering.create(side.order, side.columns)
  private val kindOrdinal = RowKind.ordinal(side.kind, input)

  private var changes: Iterator[InternalRow] = Iterator.empty
  private val ready = new ArrayDeque[SignedRow]
  // the first row after the ready changes
  private var pending: UnsafeRow = _
  private var pendingSign = 0L

  /** Starts with the changes of the next join key. */
  def begin(changes: Iterator[InternalRow]): Unit = {
    this.changes = changes
    advance()
  }

  /** Returns the next change; null after the last. */
  def first: SignedRow = {
    while (ready.isEmpty && pending != null) gather()
    ready.peekFirst()
  }

  def removeFirst(): Unit = {
    ready.removeFirst()
    ()
  }

  private def advance(): Unit =
    if (changes.hasNext) {
      val change = changes.next()
      pending = columnsOf(change).copy()
      pendingSign = RowKind.sign(RowKind.at(change, kindOrdinal))
    } else pending = null

  /** Nets rows that are equal in Spark's sort order. Such rows differ at most in their bytes. */
  private def gather(): Unit = {
    val first = pending
    var delta = pendingSign
    advance()
    while (pending != null && pending == first) {
      delta += pendingSign
      advance()
    }
    if (pending == null || sorted.compare(first, pending) != 0) {
      if (delta != 0) ready.add(new SignedRow(first, delta))
    } else {
      val deltas = new SignedRows
      deltas(first).count = delta
      while (pending != null && sorted.compare(first, pending) == 0) {
        deltas(pending).count += pendingSign
        advance()
      }
      deltas.left.toSeq
        .sortWith((a, b) => order.compare(a.row, b.row) < 0)
        .foreach(ready.add)
    }
  }
}

/** The rows of a run, with the number of copies of each before and after a batch. */
private[execution] final class ChangedRun(
    val rows: Array[UnsafeRow],
    val before: Array[Long],
    val after: Array[Long])

/**
 * The runs of a key before and after a batch.
 *
 * Call for each key: [[load]] with the batch's changes, then read runs, and finally [[save]].
 *
 * @param isKept
 *   whether a row is stored
 * @param note
 *   called for each row of a changed run, with its number of copies before and after
 */
private[execution] final class ChangedRuns(
    rows: OrderedRows[_ <: OrderedSide],
    order: Comparator[UnsafeRow],
    isKept: UnsafeRow => Boolean,
    note: (UnsafeRow, Long, Long) => Unit) {
  private val runs = mutable.TreeMap.empty[Int, ChangedRun]
  private var cachedRun = -1
  private var cached: ChangedRun = _

  /** Loads a key and its changes. */
  def load(key: UnsafeRow, changes: OrderedChanges): Unit = {
    view(key)
    var run = 0
    while (changes.first != null) {
      val isLast = run >= rows.numRuns - 1
      if (isLast || order.compare(changes.first.row, rows.bound(run + 1)) < 0) {
        runs(run) = merged(run, changes, if (isLast) null else rows.bound(run + 1))
      }
      run += 1
    }
  }

  /** Loads a key without changes. */
  def view(key: UnsafeRow): Unit = {
    rows.load(key)
    runs.clear()
    cachedRun = -1
  }

  /** The numbers of the changed runs, in order. */
  def changed: Iterable[Int] = runs.keys

  def isChanged(run: Int): Boolean = runs.contains(run)

  /** The number of runs before the batch, and at least one with changes. */
  def size: Int = if (runs.isEmpty) rows.numRuns else math.max(1, rows.numRuns)

  def apply(run: Int): ChangedRun = runs.getOrElse(
    run, {
      if (cachedRun != run) {
        val stored = rows.read(run)
        cached = new ChangedRun(stored.rows, stored.counts, stored.counts)
        cachedRun = run
      }
      cached
    })

  private def merged(run: Int, changes: OrderedChanges, until: UnsafeRow): ChangedRun = {
    val stored = if (run < rows.numRuns) rows.read(run) else SortedRun.empty
    val (all, before, after) = (
      new mutable.ArrayBuffer[UnsafeRow],
      new mutable.ArrayBuffer[Long],
      new mutable.ArrayBuffer[Long])
    def add(row: UnsafeRow, count: Long, delta: Long): Unit = {
      all += row
      before += count
      after += count + delta
      note(row, count, count + delta)
    }
    var at = 0
    def isWithin(change: SignedRow) =
      change != null && (until == null || order.compare(change.row, until) < 0)
    while (at < stored.size || isWithin(changes.first)) {
      val change = changes.first
      val compared =
        if (!isWithin(change)) -1
        else if (at == stored.size) 1
        else order.compare(stored.rows(at), change.row)
      if (compared < 0) {
        add(stored.rows(at), stored.counts(at), 0)
        at += 1
      } else if (compared == 0) {
        add(stored.rows(at), stored.counts(at), change.count)
        at += 1
        changes.removeFirst()
      } else {
        if (isKept(change.row)) add(change.row, 0, change.count)
        changes.removeFirst()
      }
    }
    new ChangedRun(all.toArray, before.toArray, after.toArray)
  }

  def save(): Unit = {
    // the last run first, because a rewrite changes the index of later runs
    runs.toSeq.reverse.foreach { case (run, changed) =>
      val rewrite = rows.rewrite(run)
      changed.rows.indices.foreach { index =>
        if (changed.after(index) != 0) rewrite.add(changed.rows(index), changed.after(index))
      }
      rewrite.finish()
    }
    rows.save()
  }
}
