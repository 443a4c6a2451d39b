// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import java.util.ArrayDeque

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection

import org.apache.spark.sql.changelog.RowKind

/**
 * Holds what a step of a join has to say, and hands it out row by row.
 *
 * A row that goes is held back for the next to come: with equal keys they are an update, and if
 * they are equal, nothing.
 *
 * @param columns
 *   the columns of what is emitted, left then right
 * @param pairBy
 *   the key by which an old and a new row are an update; none if there is none
 * @param sendsUpdateBefore
 *   whether updates come with the old row
 * @param deletes
 *   whether a row that goes without another in its place is deleted, or is half an update
 */
private[join] final class JoinOutput(
    columns: Seq[Attribute],
    pairBy: Option[Seq[Attribute]],
    sendsUpdateBefore: Boolean,
    deletes: Boolean) {

  private final class Step(
      val left: InternalRow,
      val right: InternalRow,
      val kind: Byte,
      var copies: Long)

  private val steps = new ArrayDeque[Step]
  private val joined = new JoinedRow
  private val kindOrdinal = columns.size
  private val rowOf =
    GenerateUnsafeProjection.generate(columns :+ Literal(RowKind.Insert), columns)
  private val keyOfGone = pairBy.map(GenerateUnsafeProjection.generate(_, columns)).orNull
  private val keyOfCome = pairBy.map(GenerateUnsafeProjection.generate(_, columns)).orNull
  private val goesKind = if (deletes) RowKind.Delete else RowKind.UpdateBefore
  private val comesKind = if (sendsUpdateBefore) RowKind.Insert else RowKind.UpdateAfter

  private var held: UnsafeRow = _
  private var second: UnsafeRow = _

  /** The same row of both sides, or with NULLs for one, is there more or less often. */
  def recount(left: InternalRow, right: InternalRow, before: Long, after: Long): Unit =
    if (before > after) emit(left, right, RowKind.Delete, before - after)
    else if (after > before) emit(left, right, RowKind.Insert, after - before)

  /** One row goes, so many times, and another comes. */
  def replace(
      leftBefore: InternalRow,
      rightBefore: InternalRow,
      before: Long,
      leftAfter: InternalRow,
      rightAfter: InternalRow,
      after: Long): Unit = {
    var pairs = math.min(before, after)
    if (before > pairs) emit(leftBefore, rightBefore, RowKind.Delete, before - pairs)
    if (after > pairs) emit(leftAfter, rightAfter, RowKind.Insert, after - pairs)
    while (pairs > 0) {
      emit(leftBefore, rightBefore, RowKind.Delete, 1)
      emit(leftAfter, rightAfter, RowKind.Insert, 1)
      pairs -= 1
    }
  }

  /** Rows to come out as they are, with the kind they came with. */
  def pass(left: InternalRow, right: InternalRow, kind: Byte): Unit =
    if (RowKind.retracts(kind)) emit(left, right, RowKind.Delete, 1)
    else emit(left, right, if (kind == RowKind.UpdateAfter) comesKind else kind, 1)

  private def emit(left: InternalRow, right: InternalRow, kind: Byte, copies: Long): Unit =
    steps.addLast(new Step(left, right, kind, copies))

  /** The next row to emit, valid until the next call; null if all have been. */
  def poll(): UnsafeRow = {
    var row = second
    second = null
    while (row == null && !steps.isEmpty) row = take(nextRow())
    row
  }

  /** The row still held back, if any, when no other can follow. */
  def pollHeld(): UnsafeRow = {
    val row = held
    held = null
    row
  }

  private def nextRow(): UnsafeRow = {
    val step = steps.peekFirst()
    step.copies -= 1
    if (step.copies == 0) steps.removeFirst()
    val row = rowOf(joined(step.left, step.right))
    row.setByte(kindOrdinal, step.kind)
    row
  }

  private def take(row: UnsafeRow): UnsafeRow =
    if (RowKind.retracts(row.getByte(kindOrdinal))) {
      val before = held
      held = row.copy()
      held.setByte(kindOrdinal, goesKind)
      before
    } else if (held == null) row
    else meet(row)

  /** What becomes of the row held back and one that comes after it. */
  private def meet(row: UnsafeRow): UnsafeRow = {
    val gone = pollHeld()
    val kind = row.getByte(kindOrdinal)
    gone.setByte(kindOrdinal, kind)
    if (gone == row) null
    else if (keyOfGone != null && keyOfGone(gone) == keyOfCome(row)) {
      row.setByte(kindOrdinal, RowKind.UpdateAfter)
      if (sendsUpdateBefore) {
        gone.setByte(kindOrdinal, RowKind.UpdateBefore)
        second = row
        gone
      } else row
    } else {
      gone.setByte(kindOrdinal, goesKind)
      second = row
      gone
    }
  }
}
