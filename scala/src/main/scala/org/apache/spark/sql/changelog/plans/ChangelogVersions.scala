// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics}

import org.apache.spark.sql.changelog.shared.ReplayedVersions

/**
 * Computes something of Spark's own once over the new and once over the old rows of groups, where
 * it can't tell by its results which rows they are of.
 *
 * @param versions
 *   what the computations share
 * @param kind
 *   which version a result is of: `-D` for the old one, `+I` for the new one
 * @param replay
 *   gives the rows of both versions
 * @param after
 *   the computation over the new rows, which it reads from [[ReplayedVersion]]s
 * @param before
 *   the same over the old rows
 */
case class ChangelogVersions(
    versions: ReplayedVersions,
    kind: Attribute,
    replay: LogicalPlan,
    after: LogicalPlan,
    before: LogicalPlan)
    extends LogicalPlan {

  override def children: Seq[LogicalPlan] = Seq(replay, after, before)

  override def output: Seq[Attribute] = after.output :+ kind

  override def producedAttributes: AttributeSet = AttributeSet(kind)

  /** Replayed rows are read by position, so that none of their columns can go. */
  @transient override lazy val references: AttributeSet = inputSet

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): ChangelogVersions =
    copy(replay = newChildren(0), after = newChildren(1), before = newChildren(2))
}

/**
 * The rows of one version, and of one side where two inputs are replayed together.
 *
 * @param version
 *   the kind of its rows
 * @param side
 *   the number of the side, if there are two
 * @param ordinals
 *   where `output` stands in replayed rows
 * @param group
 *   the columns the rows come sorted by, group after group
 * @param order
 *   the order of the rows of a group
 * @param operatorId
 *   of the replay, whose partitions these are
 */
case class ReplayedVersion(
    versions: ReplayedVersions,
    version: Byte,
    side: Option[Int],
    ordinals: Seq[Int],
    override val output: Seq[Attribute],
    group: Seq[Attribute],
    order: Seq[SortOrder],
    operatorId: Long)
    extends LeafNode
    with KeepsState {

  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}
