// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

/**
 * Gives each row once, when the watermark has passed its time: the rewritten form of [[EmitOnClose]].
 *
 * @param times
 *   event times of a row, each a timestamp. The row's time is the latest of those that are not NULL
 * @param delays
 *   what is added to each of them, in ms
 * @param placedBy
 *   the columns rows are shuffled by; equal rows agree on them
 * @param inputKind
 *   the row kind of `child`
 * @param operatorId
 *   identifies the operator's state within the query
 */
case class ChangelogEmitOnClose(
    times: Seq[Expression],
    delays: Seq[Long],
    placedBy: Seq[Attribute],
    inputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan)
    extends UnaryNode
    with KeepsState {

  /** The columns of a row; it only comes, and so needs no kind. */
  override def output: Seq[Attribute] = child.output.filterNot(_.exprId == inputKind.exprId)

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogEmitOnClose =
    copy(child = newChild)
}
