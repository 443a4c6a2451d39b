// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExpressionSet, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.config.ChangelogConf

/**
 * Says how long the operator that reads `child` keeps rows of it that nothing changes: a
 * `STATE_TTL` hint in its place in the query.
 *
 * @param ttl
 *   in ms, 0 for ever; or what is wrong with the hint, which matters below `to_changelog` only
 */
case class StateTtl(ttl: Either[AnalysisException, Long], child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output

  override def maxRows: Option[Long] = child.maxRows

  override def maxRowsPerPartition: Option[Long] = child.maxRowsPerPartition

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override lazy val distinctKeys: Set[ExpressionSet] = child.distinctKeys

  override protected def doCanonicalize(): LogicalPlan = child.canonicalized

  override protected def withNewChildInternal(newChild: LogicalPlan): StateTtl =
    copy(child = newChild)
}

object StateTtl {
  private val tag = TreeNodeTag[Seq[Option[Long]]]("changelogStateTtl")

  /** Notes with an operator what hints say about its inputs. */
  def set(consumer: LogicalPlan, ttls: Seq[Option[Long]]): Unit =
    consumer.setTagValue(tag, ttls)

  /** What a hint says about an input of an operator, in ms. */
  def hinted(consumer: LogicalPlan, input: Int = 0): Option[Long] =
    consumer.getTagValue(tag).flatMap(_(input))

  /** The longest that hints say about inputs whose rows an operator keeps together. */
  def longest(consumer: LogicalPlan): Option[Long] = {
    val hints = consumer.children.indices.flatMap(hinted(consumer, _))
    if (hints.contains(0L)) Some(0L) else hints.maxOption
  }

  /** How long an operator keeps rows of an input that nothing changes, in ms. */
  def ofInput(consumer: LogicalPlan, input: Int = 0): Long = orSession(hinted(consumer, input))

  /** What a hint says, or else the session. */
  def orSession(hinted: Option[Long]): Long =
    hinted.getOrElse(SQLConf.get.getConf(ChangelogConf.STATE_TTL))
}
