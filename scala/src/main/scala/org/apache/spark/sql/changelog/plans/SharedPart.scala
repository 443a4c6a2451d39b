// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.microbatch.SharedChanges

/**
 * Computes a shared part of a query. [[SharedReading]]s read its changes again.
 *
 * @param changes
 *   identifies the part to its readings
 * @param placedBy
 *   the shuffle columns of its rows; empty for one task
 */
case class SharedPart(changes: SharedChanges, placedBy: Seq[Attribute], child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  /** Readings read the part's rows by position, so no column may be pruned. */
  @transient override lazy val references: AttributeSet = inputSet

  override protected def withNewChildInternal(newChild: LogicalPlan): SharedPart =
    copy(child = newChild)
}

/**
 * Reads the output of a [[SharedPart]] again.
 *
 * @param placedBy
 *   the shuffle columns of the part, within `output`
 * @param output
 *   the columns of the part, under separate ids
 */
case class SharedReading(
    changes: SharedChanges,
    placedBy: Seq[Attribute],
    override val output: Seq[Attribute])
    extends LeafNode {

  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}

/**
 * A source without input in this batch.
 *
 * Spark uses an empty relation here. Spark's optimizer would remove the readers of an empty
 * relation: a union would lose an input, and columns would lose their ids. The optimizer leaves
 * an unknown node in place. A query then has an equal plan in every batch.
 */
case class IdleSource(override val output: Seq[Attribute]) extends LeafNode {

  override def isStreaming: Boolean = true

  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}

object IdleSource {

  /** Replaces the empty relations of a plan by idle sources. */
  def mark(plan: LogicalPlan): LogicalPlan = plan.transform {
    case relation: LocalRelation if relation.isStreaming && relation.data.isEmpty =>
      IdleSource(relation.output)
  }
}

/**
 * Static rows beside changing rows, inserted in the first batch.
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
 * Placeholder for unavailable rows. Reading them is an error. Only the first batch on stored state reads them.
 *
 * @param error
 *   the error thrown by a read
 */
case class GoneRows(override val output: Seq[Attribute], error: () => Throwable)
    extends LeafNode {

  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}
