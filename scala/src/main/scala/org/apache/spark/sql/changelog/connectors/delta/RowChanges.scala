// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import java.util.{HashMap => JavaMap}

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  And, Attribute, BoundReference, Cast, Expression, GreaterThanOrEqual, In, InterpretedOrdering,
  IsNull, JoinedRow, LessThanOrEqual, Literal, Or, UnsafeProjection, UnsafeRow
}
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.RowKind

/**
 * RowIdentity: finds the table's rows to replace or remove.
 *
 * @param columns
 *   the columns of the table
 * @param by
 *   the compared columns, each with a type in which equal values have equal bytes
 * @param isKey
 *   whether `by` is a key. A change then sets the key's row, otherwise a change counts equal rows.
 */
private[changelog] final case class RowIdentity(
    columns: StructType,
    by: Seq[(String, DataType)],
    isKey: Boolean) {

  /** Returns whether all compared columns are compared by their own bytes. */
  def isExact: Boolean = by.forall { case (name, dataType) =>
    DataType.equalsIgnoreNullability(columns(name).dataType, dataType)
  }

  /** Returns the expressions to compare, over rows that begin with the columns of the table. */
  private[delta] def values: Seq[Expression] = by.map { case (name, dataType) =>
    val value = bound(columns.fieldIndex(name))
    if (DataType.equalsIgnoreNullability(value.dataType, dataType)) value
    else Cast(value, dataType, Some("UTC"))
  }

  private def bound(index: Int): BoundReference =
    BoundReference(index, columns(index).dataType, nullable = true)

  /** Returns the columns of the table, and one more column at `place`. */
  private[delta] def rowWith(place: Int): UnsafeProjection = UnsafeProjection.create(
    columns.indices.map(bound) :+ BoundReference(place, StringType, nullable = true))
}

/**
 * RowChanges: the changes of a batch in the driver's memory.
 *
 * {{{
 *   table               key id     1 a, 2 b, 2 c        no key     a, a, b
 *   changes                        2 d: 1, 3 e: 1                  a: -1, c: 2
 *   removed rows                   2 b, 2 c                        one of a
 *   added rows                     2 d, 2 d, 3 e                   c, c
 * }}}
 *
 * @param rows
 *   the table's columns and a count, as for [[DeltaWriter.write]]
 */
private[delta] class RowChanges(identity: RowIdentity, rows: Seq[InternalRow]) {
  import RowChanges._
  import identity.columns

  private val valuesOf = UnsafeProjection.create(identity.values)

  private def countOf(row: InternalRow): Long = row.getLong(columns.size)

  /** The changes that may remove rows of the table. */
  private val wanted = if (identity.isKey) rows else rows.filter(countOf(_) < 0)

  /** Returns whether the batch may remove rows. */
  def mayRemove: Boolean = wanted.nonEmpty

  /**
   * Returns conditions met by all rows to find, the most selective first, to skip files.
   *
   * @param output
   *   the columns of the table. Columns in `partitions` always take part.
   */
  def conditions(output: Seq[Attribute], partitions: Seq[String]): Seq[Expression] = {
    val found = identity.by.map(_._1).flatMap { name =>
      val index = columns.fieldIndex(name)
      val dataType = columns(index).dataType
      Option.when(isSkippable(dataType)) {
        val values = wanted.map(_.get(index, dataType)).distinct
        (output.find(_.name == name).get, values)
      }
    }
    val (first, others) = found.partition { case (column, _) => partitions.contains(column.name) }
    val best = others.sortBy(-_._2.size).take(MostConditions)
    (first ++ best).map { case (column, values) => condition(column, values) }
  }

  private def condition(column: Attribute, values: Seq[Any]): Expression = {
    val known = values.filter(_ != null)
    val isNull = Option.when(known.size < values.size)(IsNull(column))
    def literal(value: Any) = Literal(value, column.dataType)
    val isOne =
      if (known.isEmpty) None
      else if (known.size <= MostLiterals) Some(In(column, known.map(literal)))
      else {
        val ordering = InterpretedOrdering.forSchema(Seq(column.dataType))
        val sorted = known.map(InternalRow(_)).sorted(ordering)
        def edge(row: InternalRow) = literal(row.get(0, column.dataType))
        Some(
          And(
            GreaterThanOrEqual(column, edge(sorted.head)),
            LessThanOrEqual(column, edge(sorted.last))))
      }
    (isNull ++ isOne).reduce(Or(_, _))
  }

  /**
   * Returns the table's rows affected by the changes, or None if the rows are too many for the driver.
   *
   * @param table
   *   rows with the path of their file and their index in the file
   */
  def find(table: RDD[InternalRow]): Option[Seq[InternalRow]] = {
    val most = new JavaMap[UnsafeRow, Long]
    wanted.foreach { change =>
      most.put(valuesOf(change).copy(), if (identity.isKey) Long.MaxValue else -countOf(change))
    }
    val shared = table.sparkContext.broadcast(most)
    val values = identity.values
    val found = table.mapPartitionsInternal { rows =>
      val valuesOf = UnsafeProjection.create(values)
      val left = new JavaMap[UnsafeRow, Long]
      rows.filter { row =>
        val key = valuesOf(row)
        shared.value.containsKey(key) && {
          val more = left.getOrDefault(key, shared.value.get(key))
          if (more > 0) left.put(key.copy(), more - 1)
          more > 0
        }
      }
    }
    try collect(found, columns.add("path", StringType).add("index", LongType))
    finally shared.destroy()
  }

  /** Returns the data to write, given the affected rows `found`. */
  def outcome(found: Seq[InternalRow]): Outcome = {
    val (path, index) = (columns.size, columns.size + 1)
    val ofValues = new JavaMap[UnsafeRow, mutable.Buffer[InternalRow]]
    found.foreach { row =>
      ofValues.computeIfAbsent(
        valuesOf(row).copy(),
        _ => mutable.Buffer.empty[InternalRow]) += row
    }
    val (fromTable, fromChange) =
      (identity.rowWith(columns.size + 2), identity.rowWith(columns.size + 1))
    def kindOf(kind: String) = InternalRow(UTF8String.fromString(kind))
    def old(row: InternalRow, kind: String): InternalRow =
      fromTable(new JoinedRow(row, kindOf(kind))).copy()
    def come(row: InternalRow, kind: String): InternalRow =
      fromChange(new JoinedRow(row, kindOf(kind))).copy()
    val (gone, added, changes) = (
      mutable.Buffer.empty[InternalRow],
      mutable.Buffer.empty[InternalRow],
      mutable.Buffer.empty[InternalRow])
    rows.foreach { change =>
      val count = countOf(change)
      val there = Option(ofValues.get(valuesOf(change))).map(_.toSeq).getOrElse(Nil)
      if (identity.isKey && count > 0 && there.nonEmpty) {
        gone ++= there
        there.foreach { row =>
          added += come(change, null)
          changes += old(row, RowKind.ChangeTypes(RowKind.UpdateBefore))
          changes += come(change, RowKind.ChangeTypes(RowKind.UpdateAfter))
        }
      } else if (count < 0) {
        val removed =
          if (identity.isKey) there else there.take(math.min(-count, there.size).toInt)
        gone ++= removed
        changes ++= removed.map(old(_, RowKind.ChangeTypes(RowKind.Delete)))
      } else {
        (1L to count).foreach { _ =>
          added += come(change, null)
          changes += come(change, RowKind.ChangeTypes(RowKind.Insert))
        }
      }
    }
    val removed = gone.toSeq.groupMap(_.getUTF8String(path).toString)(_.getLong(index))
    Outcome(identity, removed, added.toSeq, changes.toSeq)
  }
}

private[delta] object RowChanges {

  /**
   * Outcome: the effect of a batch on a table.
   *
   * @param removed
   *   the indexes of the rows to remove, by the path of their file
   */
  final case class Outcome(
      identity: RowIdentity,
      removed: Map[String, Seq[Long]],
      private val added: Seq[InternalRow],
      private val changes: Seq[InternalRow]) {

    /** Returns the rows to write, with the change type for rows of the change data feed. */
    def written(withFeed: Boolean): LocalRelation = {
      val columns = identity.columns.asNullable.add(RowKind.ChangeTypeColumnName, StringType)
      // Without removed rows, Delta reads the feed from the added rows.
      val rows = if (withFeed && removed.nonEmpty) added ++ changes else added
      LocalRelation(toAttributes(columns), rows)
    }
  }

  /** Returns the rows of a data set, or None if the rows are too many for the driver. */
  def collect(rows: RDD[InternalRow], schema: StructType): Option[Seq[InternalRow]] = {
    val maxResultSize =
      rows.sparkContext.getConf.getSizeAsBytes("spark.driver.maxResultSize", "1g")
    val mostBytes = mostBytesOfTask(rows.getNumPartitions, maxResultSize)
    val types = schema.map(_.dataType).toArray
    val parts = rows
      .mapPartitionsInternal { rows =>
        val unsafe = UnsafeProjection.create(types)
        var bytes = 0L
        val kept = mutable.ArrayBuffer.empty[InternalRow]
        while (rows.hasNext && bytes <= mostBytes) {
          val row = unsafe(rows.next()).copy()
          bytes += row.getSizeInBytes
          kept += row
        }
        Iterator(if (bytes > mostBytes) None else Some(kept.toArray))
      }
      .collect()
    val all = parts.toSeq.flatMap(_.toSeq.flatten)
    Option.when(parts.forall(_.isDefined) && all.size <= MostRows)(all)
  }

  /** Returns the most bytes that a task may send, so that all tasks send at most half of `maxResultSize`. */
  private[delta] def mostBytesOfTask(numTasks: Int, maxResultSize: Long): Long = {
    val most = math.max(MostBytes / math.max(numTasks, 1), LeastBytes)
    if (maxResultSize == 0) most else math.min(most, maxResultSize / 2 / math.max(numTasks, 1))
  }

  /** Returns whether Delta stores the minimum and maximum of a type per file. */
  private def isSkippable(dataType: DataType): Boolean = dataType match {
    case text: StringType => text == StringType
    case _: IntegralType | _: DecimalType | DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }

  private val MostBytes = 32L << 20
  private val LeastBytes = 1L << 20
  private val MostRows = 100000
  private val MostLiterals = 3000
  private val MostConditions = 3
}
