// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}

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
    // those of the batches before were read for the operators that there were
    case ChangelogStatic(rows) => rows
    case other => other.mapChildren(apply)
  }

  private def idle(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case leaf: LeafNode if leaf.isStreaming => IdleSource(leaf.output)
    case operator: KeepsState if StoredResult.isWanted(operator) =>
      StoredResult.unmark(operator)
      operator
  }
}
