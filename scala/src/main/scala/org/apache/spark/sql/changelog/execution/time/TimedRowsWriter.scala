// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.{Distribution, Partitioning}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.execution.UnaryExecNode
import org.apache.spark.sql.execution.streaming.state.{
  KeyStateEncoderSpec, PrefixKeyScanStateEncoderSpec, StateStore, StateStoreIterator,
  UnsafeRowPair
}
import org.apache.spark.sql.types._
import org.apache.spark.util.AccumulatorV2

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.{
  ChangeMetrics, ChangelogStateWriter, RowsByKey, SignedRow, SignedRows, StateColumns
}
import org.apache.spark.sql.changelog.identity.EntryPlacement

/** An operator that stores the rows of its input by time, as [[TimedRows]], until they are due. */
private[time] trait TimedRowsWriter extends UnaryExecNode with ChangelogStateWriter {

  /** The columns by which rows are netted. Equal rows have equal values in these columns. */
  def placedBy: Seq[Attribute]

  /** The columns of the shuffle; empty for a single partition. */
  protected def shuffledBy: Seq[Attribute] = placedBy

  /** The row kind of the input, or None for an insert-only input. */
  def inputKind: Option[Attribute]

  /** The row kind of the result. */
  def outputKind: Attribute

  /** The columns of a row, without its kind. */
  final def columns: Seq[Attribute] = RowKind.without(inputKind, child.output)

  override def output: Seq[Attribute] = columns :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  /** Returns the net changes of a task. */
  protected def netRows(): NetRows = new NetRows(columns, inputKind, placedBy, child.output)

  /** The next time with work after the batch. */
  @transient protected lazy val nextTime: NextTime = {
    val next = new NextTime
    sparkContext.register(next)
    next
  }

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def requiredChildDistribution: Seq[Distribution] = Seq(clusteredBy(shuffledBy))

  override def requiredChildOrdering: Seq[Seq[SortOrder]] = Seq(RowsByKey.order(placedBy))

  override def stateKeySchema: StructType = TimedRows.keySchema(columns)

  override def stateValueSchema: StructType = TimedRows.valueSchema

  override def keyEncoder: KeyStateEncoderSpec =
    PrefixKeyScanStateEncoderSpec(stateKeySchema, numColsPrefixKey = 2)

  override def placement: EntryPlacement =
    EntryPlacement
      .byColumns(shuffledBy, columns, first = TimedRows.Head)
      .copy(form = if (storesTimes) EntryPlacement.TimedByRow else EntryPlacement.Timed)

  /** Whether the operator looks up the times of a row ([[TimedRows.timesLike]]). */
  protected def storesTimes: Boolean = false

  /** No TTL, because time or a watermark bounds the state. */
  override protected lazy val ttls: Seq[Long] = Seq(0L)
}

/** The earliest next time, in ms, at which a task of a batch has work. */
private[time] final class NextTime extends AccumulatorV2[Long, Long] {
  private var earliest = Long.MaxValue

  override def isZero: Boolean = earliest == Long.MaxValue

  override def copy(): NextTime = {
    val copied = new NextTime
    copied.add(earliest)
    copied
  }

  override def reset(): Unit = earliest = Long.MaxValue

  override def add(time: Long): Unit = earliest = math.min(earliest, time)

  override def merge(other: AccumulatorV2[Long, Long]): Unit = add(other.value)

  /** Long.MaxValue without such a time. */
  override def value: Long = earliest
}

/** Builds and counts the changes that an operator emits. */
private[time] final class EmitRows(columns: Seq[Attribute], metrics: ChangeMetrics) {
  private val withKind =
    UnsafeProjection.create(columns.zipWithIndex.map { case (column, ordinal) =>
      BoundReference(ordinal, column.dataType, column.nullable)
    } :+ Literal(RowKind.Insert))

  /** Returns `count` inserts, or `-count` retractions for a negative count. */
  def apply(
      row: UnsafeRow,
      count: Long,
      insertKind: Byte,
      retractionKind: Byte): Iterator[InternalRow] =
    if (count == 0) Iterator.empty
    else {
      val change = withKind(row).copy()
      val kind = if (count > 0) insertKind else retractionKind
      change.setByte(columns.size, kind)
      (0L until math.abs(count)).iterator.map { _ =>
        metrics.emit(kind)
        change.copy()
      }
    }
}

/**
 * Stores rows by the time at which they may appear or disappear.
 *
 * {{{
 *   level  time              part          row         count  shown
 *   0      ms                0             the row     2      true      rows
 *   1      ms >> 8           ms            -                            their times
 *   2      ms >> 16          ms >> 8       -                            tree of times
 *   ...
 *   7      0                 0             the row     1      false     rows to recheck in each batch
 *   8      0                 0             -           ms               time of the last batch
 *   9      hash of a row     ms            -           3                rows with this hash and time
 * }}}
 * Entries are found by level and time. Due rows are thus found by reading only the few tree entries above them,
 * in any state store. The store's keys need no order.
 */
private[time] final class TimedRows(columns: Seq[Attribute], store: StateStore) {
  import TimedRows._

  private val keyOf =
    UnsafeProjection.create(keySchema(columns).zipWithIndex.map { case (field, ordinal) =>
      val dataType = if (ordinal < Head) field.dataType else columns(ordinal - Head).dataType
      BoundReference(ordinal, dataType, nullable = true)
    })
  private val prefixOf = UnsafeProjection.create(
    Seq(
      BoundReference(0, ByteType, nullable = true),
      BoundReference(1, LongType, nullable = true)))
  private val valueOf = UnsafeProjection.create(
    Seq(
      BoundReference(0, LongType, nullable = false),
      BoundReference(1, BooleanType, nullable = false)))
  private val storedRow = UnsafeProjection.create(columns.zipWithIndex.map {
    case (column, ordinal) => BoundReference(Head + ordinal, column.dataType, true)
  })
  private val head = new GenericInternalRow(Head)
  private val noRow = new GenericInternalRow(columns.size)
  private val whole = new JoinedRow
  private val value = new GenericInternalRow(2)

  /** The time of the previous batch, in ms; empty in the first batch. */
  def lastTime: Option[Long] = Option(store.get(key(ClockLevel, 0, 0, noRow))).map(_.getLong(0))

  def setLastTime(now: Long): Unit =
    store.put(key(ClockLevel, 0, 0, noRow), valueRow(now, shown = false))

  /** Returns the count of a row, and whether the row is visible; null for an unknown row. */
  def get(place: Long, row: InternalRow): UnsafeRow = store.get(rowKey(place, row))

  def put(place: Long, row: InternalRow, count: Long, shown: Boolean): Unit = {
    store.put(rowKey(place, row), valueRow(count, shown))
    if (place != RowTimes.Recheck) enter(place)
  }

  def remove(place: Long, row: InternalRow): Unit = store.remove(rowKey(place, row))

  /** Returns the row of an entry. */
  def rowOf(entry: UnsafeRowPair): UnsafeRow = storedRow(entry.key).copy()

  /** Returns the noted times of rows with the same hash as `row`, earliest first. */
  def timesLike(row: UnsafeRow): Array[Long] = parts(HashLevel, hash(row))

  /** Adds `more` to the number of rows with the hash of `row` and this time, for [[timesLike]]. */
  def countTime(row: UnsafeRow, time: Long, more: Int): Unit = {
    val entry = key(HashLevel, hash(row), time, noRow)
    val noted = store.get(entry)
    val count = (if (noted == null) 0L else noted.getLong(0)) + more
    if (count > 0) store.put(entry, valueRow(count, shown = false)) else store.remove(entry)
  }

  /** Returns the entries of a place. The caller may change and remove entries while iterating. */
  def at(place: Long): StateStoreIterator[UnsafeRowPair] = {
    val (level, time) = if (place == RowTimes.Recheck) (RecheckLevel, 0L) else (0, place)
    store.prefixScan(prefix(level, time))
  }

  /** Returns the due times, earliest first. Each time is removed when the next is requested. */
  def due(now: Long): Iterator[Long] = dueIn(Levels, 0, now)

  /** The earliest stored time. */
  def next: Option[Long] = nextIn(Levels, 0)

  private def dueIn(level: Int, node: Long, now: Long): Iterator[Long] =
    parts(level, node).iterator.takeWhile(part => start(level, part) <= now).flatMap { part =>
      val times = if (level == 1) Iterator.single(part) else dueIn(level - 1, part, now)
      // a part that is only partly due stays
      if (start(level, part + 1) <= now + 1) {
        times ++ forget(level, node, part)
      } else times
    }

  private def forget(level: Int, node: Long, part: Long): Iterator[Long] = new Iterator[Long] {
    override def hasNext: Boolean = {
      store.remove(key(level, node, part, noRow))
      false
    }

    override def next(): Long = Iterator.empty.next()
  }

  private def nextIn(level: Int, node: Long): Option[Long] =
    if (level == 0) Some(node)
    else parts(level, node).iterator.flatMap(nextIn(level - 1, _)).nextOption()

  /** Adds a time to the tree. If a level has the time, the levels above have it, too. */
  private def enter(time: Long): Unit = {
    var level = 1
    var isNew = true
    while (isNew && level <= Levels) {
      val entry = key(level, time >> (Bits * level), time >> (Bits * (level - 1)), noRow)
      isNew = store.get(entry) == null
      if (isNew) store.put(entry, valueRow(0, shown = false))
      level += 1
    }
  }

  /** Returns the parts of a node, in order. */
  private def parts(level: Int, node: Long): Array[Long] = {
    val found = mutable.ArrayBuilder.make[Long]
    val entries = store.prefixScan(prefix(level, node))
    try entries.foreach(entry => found += entry.key.getLong(2))
    finally entries.close()
    found.result().sorted
  }

  private def hash(row: UnsafeRow): Long =
    XXH64.hashUnsafeBytes(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes, 42L)

  private def start(level: Int, part: Long): Long = part << (Bits * (level - 1))

  private def rowKey(place: Long, row: InternalRow): UnsafeRow =
    if (place == RowTimes.Recheck) key(RecheckLevel, 0, 0, row) else key(0, place, 0, row)

  private def key(level: Int, time: Long, part: Long, row: InternalRow): UnsafeRow = {
    head.update(0, level.toByte)
    head.update(1, time)
    head.update(2, part)
    keyOf(whole(head, row))
  }

  private def prefix(level: Int, time: Long): UnsafeRow = {
    head.update(0, level.toByte)
    head.update(1, time)
    prefixOf(head)
  }

  private def valueRow(count: Long, shown: Boolean): UnsafeRow = {
    value.update(0, count)
    value.update(1, shown)
    valueOf(value)
  }
}

private[time] object TimedRows {
  private val Bits = 8
  private val Levels = 6
  private val RecheckLevel = Levels + 1
  private val ClockLevel = Levels + 2
  private val HashLevel = Levels + 3

  /** Returns whether a key belongs to a row. */
  def isRow(key: UnsafeRow): Boolean = {
    val level = key.getByte(0)
    level == 0 || level == RecheckLevel
  }

  /** Returns whether a key belongs to the time of the last batch. */
  def isClock(key: UnsafeRow): Boolean = key.getByte(0) == ClockLevel

  /** Returns the place of a row, by its key. */
  def placeOf(key: UnsafeRow): Long =
    if (key.getByte(0) == 0) key.getLong(1) else RowTimes.Recheck

  /** The number of key columns before the row's columns. */
  val Head: Int = 3

  /** The latest time, in ms, that the tree can hold. */
  val LastTime: Long = (1L << (Bits * Levels)) - 1

  def keySchema(columns: Seq[Attribute]): StructType = {
    val head = Seq("level" -> ByteType, "time" -> LongType, "part" -> LongType).map {
      case (name, dataType) => AttributeReference(name, dataType)()
    }
    StateColumns.ofKey(head ++ columns)
  }

  val valueSchema: StructType =
    StructType(Seq(StructField("count", LongType), StructField("shown", BooleanType)))
}

/**
 * Adds rows stored in [[TimedRows]] of other partitions. The tree of times is built again from the rows.
 *
 * @param keySchema
 *   the columns of the state's key
 * @param storesTimes
 *   whether the operator also looks up the times of a row
 */
final class MovedTimedRows(keySchema: StructType, store: StateStore, storesTimes: Boolean) {
  private val rows =
    new TimedRows(toAttributes(StructType(keySchema.drop(TimedRows.Head))), store)

  /** Adds the entry of a row, or of the time of the last batch. */
  def add(entry: UnsafeRowPair): Unit =
    if (TimedRows.isClock(entry.key)) {
      // every partition has had the same batches
      rows.setLastTime(math.max(entry.value.getLong(0), rows.lastTime.getOrElse(0L)))
    } else {
      val place = TimedRows.placeOf(entry.key)
      val row = rows.rowOf(entry)
      rows.put(place, row, entry.value.getLong(0), entry.value.getBoolean(1))
      if (storesTimes) rows.countTime(row, place, 1)
    }
}

object MovedTimedRows {

  /** Returns whether an entry belongs to a row. Such an entry moves to a single partition. */
  def isRow(key: UnsafeRow): Boolean = TimedRows.isRow(key)

  /** Returns whether an entry is the time of the last batch. Such an entry goes to every partition. */
  def isClock(key: UnsafeRow): Boolean = TimedRows.isClock(key)
}

/**
 * Nets a task's changes of a batch to one element per row.
 *
 * @param columns
 *   the columns of a row
 * @param kind
 *   the row kind of a change; empty over insert-only input
 * @param placedBy
 *   columns with equal values in equal rows
 * @param input
 *   the columns of a change
 */
private[time] final class NetRows(
    val columns: Seq[Attribute],
    kind: Option[Attribute],
    placedBy: Seq[Attribute],
    input: Seq[Attribute]) {
  private val kindOrdinal = RowKind.ordinal(kind, input)
  private val rowOf = UnsafeProjection.create(columns, input)

  /** Returns changed rows with their net count. The next row overwrites the previous row. */
  def apply(changes: Iterator[InternalRow]): Iterator[SignedRow] =
    RowsByKey(changes, placedBy, input)
      .flatMap { case (_, group) => netted(group) }
      .filter(_.count != 0)

  /** Nets changes with equal `placedBy` columns. */
  private def netted(changes: Iterator[InternalRow]): Iterator[SignedRow] = {
    // reading the next change overwrites the row
    val first = changes.next().copy()
    if (!changes.hasNext) {
      val net = new SignedRow(rowOf(first))
      net.add(RowKind.at(first, kindOrdinal))
      Iterator.single(net)
    } else {
      val nets = new SignedRows
      (Iterator.single(first) ++ changes).foreach { change =>
        nets(rowOf(change)).add(RowKind.at(change, kindOrdinal))
      }
      nets.left
    }
  }
}
