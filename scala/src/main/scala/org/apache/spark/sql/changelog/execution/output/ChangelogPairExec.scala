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
 * Corrects updates of which a projection or filter removed or changed a half.
 *
 * {{{
 *   in                         out
 *   -U a, +U a                 nothing: the changed columns are not read
 *   -U a (no +U of its key)    -D a: the filter rejects the new row
 *   +U a (no -U of its key)    +I a: the filter rejected the old row
 * }}}
 *
 * Compares adjacent rows only. An operator emits both halves of an update together, and the nodes in between
 * keep them adjacent.
 *
 * @param key
 *   the columns with equal values in both halves of an update
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
