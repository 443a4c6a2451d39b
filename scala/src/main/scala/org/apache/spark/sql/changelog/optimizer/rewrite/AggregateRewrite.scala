// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.{AggregateForm, AnnotatedPlan}
import org.apache.spark.sql.changelog.plans.{AggregateCalls, ChangelogAggregate}

/**
 * Replaces an `Aggregate` by a [[ChangelogAggregate]].
 * {{{
 *   Aggregate [city], [city, sum(fare)]     =>   ChangelogAggregate [city], [city, sum(fare)]
 *   +- rides  [I,UB,UA,D]                        +- rides  [I,UB,UA,D]
 * }}}
 */
private[optimizer] object AggregateRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan.isInstanceOf[Aggregate]

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val aggregate = node.plan.asInstanceOf[Aggregate]
    val calls = AggregateCalls(aggregate)
    val inputKind = RowKind.find(inputs.head.output)
    val distinctId =
      if (calls.functions.exists(AggregateForm.keepsDistinct(_, inputKind.isDefined))) {
        Some(ids.next())
      } else None
    val rewritten = ChangelogAggregate(
      calls,
      inputKind,
      node.mode.updateKind,
      AggregateForm.waitsForWatermark(node),
      RowKind.newAttribute(),
      ids.next(),
      distinctId,
      inputs.head)
    NodeRewrite.select(rewritten, aggregate.output, withKind = !node.mode.isInsertOnly)
  }
}
