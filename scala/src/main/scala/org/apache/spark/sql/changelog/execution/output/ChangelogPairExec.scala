// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.output

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

import org.apache.spark.sql.changelog.RowKind

/**
 * Puts right what projections and filters do to an operator's updates.
 *
 * {{{
 *   in                         out
 *   -U a, +U a                 nothing: the columns that changed are not read
 *   -U a (no +U of its key)    -D a: the new row left the filter
 *   +U a (no -U of its key)    +I a: the old row was outside the filter
 * }}}
 *
 * Looks at neighbouring rows only: an operator emits both halves of an update together, and what
 * lies in between keeps them so.
 *
 * @param key
 *   the columns that are equal in both halves of an update
 */
case class ChangelogPairExec(key: Seq[Attribute], kind: Attribute, child: SparkPlan)
    extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def simpleString(maxFields: Int): String =
    s"$nodeName key=${truncatedString(key, "[", ", ", "]", maxFields)}"

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override protected def doExecute(): RDD[InternalRow] =
    child.execute().mapPartitionsInternal { rows =>
      val columns = output.filterNot(_.exprId == kind.exprId)
      val values = UnsafeProjection.create(columns, output)
      val otherValues = UnsafeProjection.create(columns, output)
      val keyOf = UnsafeProjection.create(key, output)
      val otherKeyOf = UnsafeProjection.create(key, output)
      val rowOf = UnsafeProjection.create(output, output)
      val kindOrdinal = output.indexWhere(_.exprId == kind.exprId)

      new Iterator[InternalRow] {
        private var waiting: UnsafeRow = _ // a -U whose +U may follow
        private var first: UnsafeRow = _
        private var second: UnsafeRow = _

        override def hasNext: Boolean = {
          while (first == null && rows.hasNext) take(rowOf(rows.next()))
          if (first == null && waiting != null) emitWaiting(RowKind.Delete)
          first != null
        }

        override def next(): InternalRow = {
          if (!hasNext) throw new NoSuchElementException
          val row = first
          first = second
          second = null
          row
        }

        private def take(row: UnsafeRow): Unit = row.getByte(kindOrdinal) match {
          case RowKind.UpdateBefore =>
            if (waiting != null) emitWaiting(RowKind.Delete)
            waiting = row.copy()
          case RowKind.UpdateAfter if waiting != null && keyOf(waiting) == otherKeyOf(row) =>
            if (values(waiting) == otherValues(row)) waiting = null
            else {
              emitWaiting(RowKind.UpdateBefore)
              emit(row)
            }
          case RowKind.UpdateAfter =>
            if (waiting != null) emitWaiting(RowKind.Delete)
            row.setByte(kindOrdinal, RowKind.Insert)
            emit(row)
          case _ =>
            if (waiting != null) emitWaiting(RowKind.Delete)
            emit(row)
        }

        private def emitWaiting(kind: Byte): Unit = {
          waiting.setByte(kindOrdinal, kind)
          emit(waiting)
          waiting = null
        }

        private def emit(row: UnsafeRow): Unit = if (first == null) first = row else second = row
      }
    }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogPairExec =
    copy(child = newChild)
}
