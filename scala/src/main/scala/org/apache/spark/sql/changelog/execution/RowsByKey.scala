// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.util.{ArrayList, Arrays, Comparator, LinkedHashMap, Locale}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.execution.{GroupedIterator, SortPrefixUtils}
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.RowKind

/**
 * Groups rows that are sorted in the order of [[RowsByKey.order]] by key.
 *
 * Spark sorts by one column of up to 8 bytes with a radix sort, several times as fast as any other sort.
 * Operators do not depend on the order of keys. Keys that do not fit are therefore sorted by their hash alone.
 * Rows of different keys with the same hash may be mixed. Rows of the other keys wait until the first key has
 * no more rows.
 *
 * The next row or key overwrites the previous one.
 *
 * @param keyOf
 *   returns the key of a row; keys are equal if their bytes are equal
 * @param hashOf
 *   returns the sort column, a row with one long; None if the rows are sorted by the key
 */
private[execution] final class RowsByKey(
    rows: Iterator[InternalRow],
    keyOf: InternalRow => UnsafeRow,
    hashOf: Option[InternalRow => UnsafeRow])
    extends Iterator[(InternalRow, Iterator[InternalRow])] {
  private var key: UnsafeRow = _
  private var hash = 0L

  // the source of the key's rows: all rows, or the rows that waited
  private var source = rows
  private var waiting = new ArrayList[InternalRow]
  // the first row with another hash
  private var ahead: InternalRow = if (rows.hasNext) rows.next() else null
  private var current: Rows = _

  override def hasNext: Boolean = {
    finish()
    ahead != null || !waiting.isEmpty
  }

  override def next(): (InternalRow, Iterator[InternalRow]) = {
    if (!hasNext) throw new NoSuchElementException
    val first = nextFirst()
    val keyOfFirst = keyOf(first)
    if (key == null) key = emptyLike(keyOfFirst)
    key.copyFrom(keyOfFirst)
    hashOf.foreach(toHash => hash = toHash(first).getLong(0))
    current = new Rows(first)
    (key, current)
  }

  private def emptyLike(row: UnsafeRow): UnsafeRow =
    UnsafeRow.createFromByteArray(row.getSizeInBytes, row.numFields)

  /** Skips the key's remaining rows. */
  private def finish(): Unit = if (current != null) {
    while (current.hasNext) current.next()
    current = null
  }

  private def nextFirst(): InternalRow = {
    if (!waiting.isEmpty) {
      source = waiting.iterator().asScala
      waiting = new ArrayList[InternalRow]
    }
    if ((source ne rows) && source.hasNext) source.next()
    else {
      source = rows
      val first = ahead
      ahead = null
      first
    }
  }

  private final class Rows(private var row: InternalRow) extends Iterator[InternalRow] {
    private var isOver = false

    override def hasNext: Boolean = {
      while (row == null && !isOver) {
        if (!source.hasNext) isOver = true
        else {
          val next = source.next()
          if (keyOf(next) == key) row = next
          else if (hashOf.exists(_(next).getLong(0) == hash)) waiting.add(next.copy())
          else {
            ahead = next
            isOver = true
          }
        }
      }
      row != null
    }

    override def next(): InternalRow = {
      if (!hasNext) throw new NoSuchElementException
      val result = row
      row = null
      result
    }
  }
}

private[execution] object RowsByKey {

  /** Returns a sort order that groups equal keys. The order of keys is arbitrary. */
  def order(keys: Seq[Expression]): Seq[SortOrder] =
    hash(keys).map(Seq(_)).getOrElse(keys).map(SortOrder(_, Ascending))

  /**
   * Groups rows by key.
   *
   * @param rows
   *   rows of the columns `input`, sorted by [[order]]
   */
  def apply(
      rows: Iterator[InternalRow],
      keys: Seq[Expression],
      input: Seq[Attribute]): Iterator[(InternalRow, Iterator[InternalRow])] =
    if (!keys.forall(key => isExact(key.dataType))) GroupedIterator(rows, keys, input)
    else {
      val keyOf = UnsafeProjection.create(keys, input)
      val hashOf = hash(keys).map(hash => UnsafeProjection.create(Seq(hash), input))
      new RowsByKey(rows, keyOf(_), hashOf.map(toHash => toHash(_)))
    }

  private def hash(keys: Seq[Expression]): Option[Expression] = keys match {
    case Nil => None
    case Seq(key) if SortPrefixUtils.canSortFullyWithPrefix(SortOrder(key, Ascending)) => None
    case _ if keys.forall(key => isExact(key.dataType)) => Some(new XxHash64(keys))
    case _ => None
  }

  /** Returns whether equal values of the type always have equal bytes, and the type has a hash. */
  private def isExact(dataType: DataType): Boolean =
    UnsafeRowUtils.isBinaryStable(dataType) && !dataType.existsRecursively {
      case FloatType | DoubleType | _: MapType | _: VariantType | _: UserDefinedType[_] => true
      case _ => false
    }
}

/**
 * A fixed total order of rows, the same in every batch: the requested order, then the remaining columns. Rows
 * that are still equal, such as zeros of either sign, are ordered by their bytes.
 */
object RowOrder {

  /** The part of the order that Spark can sort by. */
  def apply(order: Seq[SortOrder], columns: Seq[Attribute]): Seq[SortOrder] =
    order ++
      columns
        .filter(column => RowOrdering.isOrderable(column.dataType))
        .filterNot(column => order.exists(_.child.semanticEquals(column)))
        .map(SortOrder(_, Ascending))

  /** Extends the order that Spark sorts by to the total order: only identical rows are equal. */
  def total(sorted: Comparator[InternalRow]): Comparator[UnsafeRow] = { (left, right) =>
    val compared = sorted.compare(left, right)
    if (compared != 0) compared else Arrays.compareUnsigned(left.getBytes, right.getBytes)
  }
}

/** Returns the distinct rows of an iterator that may reuse one row object. */
private[execution] object DistinctRows {
  def apply(rows: Iterator[UnsafeRow]): Array[UnsafeRow] = {
    val found = mutable.LinkedHashSet.empty[UnsafeRow]
    rows.foreach(row => if (!found.contains(row)) found += row.copy())
    found.toArray
  }
}

/**
 * Names the columns of a state record.
 *
 * Spark reads state by column name, so the names must be unique. Of several columns called `sum`, the second is
 * `sum_1`.
 */
object StateColumns {

  /** Returns the columns of keys. Strings lose their collation, because keys are compared by their bytes. */
  def ofKey(columns: Seq[Attribute]): StructType = apply(columns.map { column =>
    column.name -> column.dataType.transformRecursively { case _: StringType => StringType }
  })

  /** Returns the entry's key as shown in errors, without NULLs. */
  def keyText(columns: Seq[Attribute], key: InternalRow): String =
    columns
      .zip(key.toSeq(columns.map(_.dataType)))
      .collect { case (column, value) if value != null => s"${column.name} = $value" }
      .mkString(", ")

  def apply(columns: Seq[(String, DataType)]): StructType = {
    val taken = mutable.Set.empty[String]
    StructType(columns.map { case (name, dataType) =>
      val candidates = Iterator.single(name) ++ Iterator.from(1).map(index => s"${name}_$index")
      val free = candidates.find(candidate => taken.add(candidate.toLowerCase(Locale.ROOT))).get
      StructField(free, dataType)
    })
  }
}

/**
 * SignedRows: a multiset of rows with signed counts, in memory. It nets the changes of a batch for a key: equal rows of
 * opposite signs cancel out.
 */
private[execution] final class SignedRows {
  private val rows = new LinkedHashMap[UnsafeRow, SignedRow]

  /** Returns the entry of a row, to change its count. The caller may overwrite `row` afterwards. */
  def apply(row: UnsafeRow): SignedRow = {
    var entry = rows.get(row)
    if (entry == null) {
      entry = new SignedRow(row.copy())
      rows.put(entry.row, entry)
    }
    entry
  }

  /** Returns the rows that did not cancel out, in the order of their first change. */
  def left: Iterator[SignedRow] = rows.values.iterator.asScala.filter(_.count != 0)

  def clear(): Unit = rows.clear()
}

/** The number of inserts minus retractions of a row, and the row kinds of both. */
private[execution] final class SignedRow(val row: UnsafeRow, var count: Long = 0) {
  var insertKind: Byte = RowKind.Insert
  var retractionKind: Byte = RowKind.Delete

  /** Adds a change. A row inserted by an after image stays one, in any order of the changes. */
  def add(kind: Byte): Unit = {
    count += RowKind.sign(kind)
    if (RowKind.retracts(kind)) retractionKind = kind
    else if (insertKind != RowKind.UpdateAfter) insertKind = kind
  }
}
