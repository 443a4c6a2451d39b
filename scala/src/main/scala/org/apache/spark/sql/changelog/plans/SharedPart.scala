// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.shared.SharedChanges

/**
 * Computes a part of a query whose changes are read in several places: here, and by
 * [[SharedReading]]s.
 *
 * @param changes
 *   what the readings know it by
 * @param placedBy
 *   the columns its rows are distributed by; none for all rows in one place
 */
case class SharedPart(changes: SharedChanges, placedBy: Seq[Attribute], child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  /** Other readings read the part's rows by position, so that none of its columns can be pruned. */
  @transient override lazy val references: AttributeSet = inputSet

  override protected def withNewChildInternal(newChild: LogicalPlan): SharedPart =
    copy(child = newChild)
}

/**
 * Reads what a [[SharedPart]] gives once more.
 *
 * @param placedBy
 *   as there, among `output`
 * @param output
 *   the columns of the part, under ids of their own
 */
case class SharedReading(
    changes: SharedChanges,
    placedBy: Seq[Attribute],
    override val output: Seq[Attribute])
    extends LeafNode {

  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}
