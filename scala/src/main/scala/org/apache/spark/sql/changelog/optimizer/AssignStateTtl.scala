// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.StateTtl

/**
 * Notes with each operator what `STATE_TTL` hints say about its inputs, and takes them out of the
 * plan. Nothing restructures the plan after that.
 */
private[optimizer] object AssignStateTtl extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.isInstanceOf[StateTtl])) plan
    else {
      LiftStateTtl(plan).transformUp {
        case node if node.children.exists(_.isInstanceOf[StateTtl]) =>
          val assigned = node.withNewChildren(node.children.map(withoutHint))
          StateTtl.set(assigned, node.children.map(hinted))
          assigned
      }
    }

  private def hinted(input: LogicalPlan): Option[Long] = input match {
    case StateTtl(ttl, _) => ttl.toOption
    case _ => None
  }

  private def withoutHint(input: LogicalPlan): LogicalPlan = input match {
    case hint: StateTtl => hint.child
    case other => other
  }
}
