// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

/**
 * Lets rows of `child` leave that nothing has changed for some time: a `ROW_TTL` hint in its place in
 * the query.
 *
 * {{{
 *   SELECT /*+ ROW_TTL(o, '3 days') */ ...      Project
 *   FROM orders o                            =>    +- RowTtl 3 days
 *                                                     +- SubqueryAlias o
 * }}}
 * A row that differs in any column is another one, so no column of `child` is left out.
 *
 * @param ttl
 *   in ms
 * @param problem
 *   what is wrong with the hint, which matters below `to_changelog` only
 */
case class RowTtl(ttl: Long, child: LogicalPlan, problem: Option[AnalysisException] = None)
    extends UnaryNode {
  override def output: Seq[Attribute] = child.output

  @transient override lazy val references: AttributeSet = child.outputSet

  override protected def withNewChildInternal(newChild: LogicalPlan): RowTtl =
    copy(child = newChild)
}
