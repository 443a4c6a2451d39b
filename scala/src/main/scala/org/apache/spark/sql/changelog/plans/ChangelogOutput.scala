// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

/**
 * Hands the changes of a query to its reader: the rewritten form of [[ToChangelog]].
 *
 * @param kind
 *   the row kind of `child`, none if it is insert-only
 * @param pairBy
 *   if `-U` and `+U` of one key stand next to each other in `child`, that key: a half left alone
 *   by a filter then becomes `-D` or `+I`, and a pair that says nothing is dropped
 * @param nettedBy
 *   columns of which the result holds one change per batch at most: all its rows are in one task,
 *   side by side. None if no such columns are known
 * @param sendsUpdateBefore
 *   whether the reader wants `update_preimage`
 * @param columns
 *   the columns of the result
 * @param changeType
 *   the column that tells the change type
 * @param key
 *   the columns by which the reader replaces rows: what it said, or what was chosen for a reader that
 *   gets no old rows. There is one change per key then
 * @param upsertKeys
 *   columns that identify a row of the result, smallest first
 * @param explanation
 *   what EXPLAIN says about the query
 */
case class ChangelogOutput(
    kind: Option[Attribute],
    pairBy: Option[Seq[Attribute]],
    nettedBy: Option[Seq[Attribute]],
    sendsUpdateBefore: Boolean,
    columns: Seq[Attribute],
    changeType: Attribute,
    key: Option[Seq[Attribute]],
    upsertKeys: Seq[Seq[Attribute]],
    explanation: Explanation,
    child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = columns :+ changeType

  override def producedAttributes: AttributeSet = AttributeSet(changeType)

  override def isStreaming: Boolean = true

  def explained: ExplainNode = explanation.tree

  override def simpleString(maxFields: Int): String = s"ChangelogOutput ${explanation.mode}"

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogOutput =
    copy(child = newChild)
}
