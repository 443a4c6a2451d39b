// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.inference.nodes.{StaticInference, StaticSide}
import org.apache.spark.sql.changelog.plans.{ChangelogStatic, FromChangelog}

/**
 * Makes static rows that stand beside changing ones come once, in the first batch.
 * {{{
 *   Union                               Union
 *   :- Aggregate [word]        =>       :- Aggregate [word]
 *   +- LocalRelation                    +- ChangelogStatic
 *                                          +- LocalRelation
 * }}}
 * A static side of a join is left alone where the join only looks rows up in it; one whose rows
 * come out by themselves is kept in state like a changing one.
 */
object InsertStaticRows extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    // what lies below a source is Spark's own
    case source: FromChangelog => source
    case join: Join if StaticSide.looksUp(join) =>
      join.mapChildren(side => if (StaticInference.isStatic(side)) side else apply(side))
    case _ =>
      plan.mapChildren { input =>
        if (StaticInference.isStatic(input)) ChangelogStatic(input) else apply(input)
      }
  }
}
