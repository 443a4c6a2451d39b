// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}

/**
 * Marks operators, logical or physical, whose state is that of an earlier query. In the batch in which
 * the query that takes it over begins, such an operator emits all rows of its result, as if they had
 * just come.
 */
object StoredResult {
  private val tag = TreeNodeTag[Unit]("changelogStoredResult")

  def mark(operator: TreeNode[_]): Unit = operator.setTagValue(tag, ())

  def unmark(operator: TreeNode[_]): Unit = operator.unsetTagValue(tag)

  def isWanted(operator: TreeNode[_]): Boolean = operator.getTagValue(tag).isDefined
}
