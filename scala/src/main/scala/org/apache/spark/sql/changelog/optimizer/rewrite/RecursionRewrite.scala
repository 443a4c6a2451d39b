// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, Union}
import org.apache.spark.sql.types.BooleanType

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.AnnotatedPlan
import org.apache.spark.sql.changelog.plans._

/**
 * Runs a recursive query anew where its inputs change.
 * {{{
 *   RecursiveQuery                   ChangelogConsolidate
 *   :- a  [I,UB,UA,D]         =>     +- ChangelogRecursion
 *   +- b  [I]                           +- ChangelogReplay
 *                                          +- Union           each row with the number of its input
 *                                             :- a
 *                                             +- b
 * }}}
 * A version opens with a row that is of no input: the recursion may have rows where no input has any.
 */
private[optimizer] object RecursionRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan.isInstanceOf[RecursiveQuery]

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val query = node.plan.asInstanceOf[RecursiveQuery]
    val rows = numbered(query.inputs, inputs)
    val replay = ChangelogReplay(
      partition = Nil,
      order = Nil,
      session = None,
      dropsLate = true,
      emitsClosed = false,
      RowKind.find(rows.output),
      opening = Some(AttributeReference("_opening", BooleanType, nullable = false)()),
      RowKind.newAttribute(),
      ids.next(),
      rows)
    // after the number of the input
    val starts = query.inputs.scanLeft(1)(_ + _.output.size)
    val places = query.inputs.zip(starts).map { case (input, start) =>
      input.output.indices.map(start + _)
    }
    val computed = ChangelogRecursion(query.loop, places, RowKind.newAttribute(), replay)
    ChangelogConsolidate(
      query.output.filter(column => RowOrdering.isOrderable(column.dataType)),
      pairs = false,
      replaces = false,
      computed.kind,
      RowKind.newAttribute(),
      computed)
  }

  /** The rows of all inputs: each with the number of its own, and NULL in the columns of the others. */
  private def numbered(inputs: Seq[LogicalPlan], changes: Seq[LogicalPlan]): LogicalPlan = {
    val rows = inputs.indices.map { number =>
      val columns = inputs.zipWithIndex.flatMap { case (input, index) =>
        input.output.map { column =>
          val value = if (index == number) column else Literal(null, column.dataType)
          Alias(value, column.name)()
        }
      }
      val kind = RowKind.find(changes(number).output).getOrElse(Literal(RowKind.Insert))
      val input = Alias(Literal(number), "input")()
      Project((input +: columns) :+ Alias(kind, RowKind.ColumnName)(), changes(number))
    }
    if (rows.size == 1) rows.head else Union(rows)
  }
}
