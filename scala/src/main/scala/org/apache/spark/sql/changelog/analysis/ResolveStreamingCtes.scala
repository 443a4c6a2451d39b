// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.plans.logical.{CTERelationRef, LogicalPlan, WithCTE}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.changelog.plans.{FromChangelog, ToChangelog}

/**
 * Finds the streams that a query below `to_changelog` reads through a common table expression.
 * {{{
 *   WITH rides AS (SELECT * FROM from_changelog(TABLE(stream), 'op'))
 *   SELECT * FROM to_changelog(TABLE(SELECT count(*) FROM rides))
 * }}}
 * The function sees a reference where the stream will be, and Spark looks before it puts it there.
 * Runs when everything else is resolved. Leaves alone what already is a stream.
 */
object ResolveStreamingCtes extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(isUndecided)) plan
    else {
      val definitions = plan.collect { case WithCTE(_, defs) => defs }.flatten
      val byId = definitions.map(definition => definition.id -> definition.child).toMap

      def readsStream(node: LogicalPlan): Boolean = node.exists {
        case source: FromChangelog => source.streaming
        case reference: CTERelationRef => byId.get(reference.cteId).exists(readsStream)
        case _ => false
      }

      plan.resolveOperatorsDown {
        case root: ToChangelog if isUndecided(root) && readsStream(root.child) =>
          root.copy(streaming = true)
      }
    }

  private def isUndecided(plan: LogicalPlan): Boolean = plan match {
    case root: ToChangelog => !root.streaming && root.exists(_.isInstanceOf[CTERelationRef])
    case _ => false
  }
}
