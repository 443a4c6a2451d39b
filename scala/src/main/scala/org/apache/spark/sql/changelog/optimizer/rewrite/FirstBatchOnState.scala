// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

import org.apache.spark.sql.changelog.plans._

/**
 * The plan of the batch in which a query takes over state of an earlier one.
 *
 * {{{
 *   ChangelogJoin                             ChangelogJoin              begins without state
 *   :- ChangelogAggregate  kept               :- ChangelogAggregate      emits all groups
 *   |  +- orders                     =>       |  +- (nothing)
 *   +- rates                                  +- rates                   read from its beginning
 * }}}
 * All that lies below an operator that emits its stored result goes through the batch without news.
 */
private[optimizer] object FirstBatchOnState {

  def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case operator: KeepsState if StoredResult.isWanted(operator) => operator.mapChildren(idle)
    case SourceRows(rows) => rows
    // those of the batches before were read for the operators that there were
    case ChangelogStatic(rows) => rows
    case other => other.mapChildren(apply)
  }

  private def idle(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case source: SourceRows => IdleSource(source.output)
    case operator: KeepsState if StoredResult.isWanted(operator) =>
      StoredResult.unmark(operator)
      operator
  }
}

/** What a source brings in such a batch, as long as it isn't known who reads it. */
private[optimizer] case class SourceRows(child: LogicalPlan) extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): SourceRows =
    copy(child = newChild)
}
