// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.microbatch.SharedChanges

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

/**
 * A source that has no news in this batch.
 *
 * Spark has a relation without rows in its place, and its optimizer would cut what reads that alone:
 * a union would lose an input, and its columns their ids. What it knows nothing of it leaves alone,
 * so that a query has the same plan in every batch.
 */
case class IdleSource(override val output: Seq[Attribute]) extends LeafNode {

  override def isStreaming: Boolean = true

  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}

object IdleSource {

  /** A plan of Spark's with its idle sources marked as such. */
  def mark(plan: LogicalPlan): LogicalPlan = plan.transform {
    case relation: LocalRelation if relation.isStreaming && relation.data.isEmpty =>
      IdleSource(relation.output)
  }
}

/**
 * Rows of something that never changes, among rows that do: they are inserted in the first batch.
 *
 * @param child
 *   the static rows; read in the first batch only
 */
case class ChangelogStatic(child: LogicalPlan) extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override def maxRows: Option[Long] = child.maxRows

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogStatic =
    copy(child = newChild)
}

/**
 * Rows that are not there any more, which is an error of a batch that reads them: one that begins with kept state
 * only asks for them.
 *
 * @param error
 *   what is thrown where they are read
 */
case class GoneRows(override val output: Seq[Attribute], error: () => Throwable)
    extends LeafNode {

  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}
