// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.changes

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LeafNode

/**
 * What a query calls `changes(…)`, until it is known whether it is read as a stream.
 *
 * @param from
 *   the first version whose changes are wanted
 * @param to
 *   the last one
 */
case class ViewChanges(view: String, from: Option[Long], to: Option[Long]) extends LeafNode {
  override def output: Seq[Attribute] = Nil
  override lazy val resolved: Boolean = false
}
