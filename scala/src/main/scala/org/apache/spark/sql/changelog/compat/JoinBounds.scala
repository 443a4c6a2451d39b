// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper
import org.apache.spark.sql.catalyst.expressions.{
  Attribute, AttributeSet, BoundReference, Expression
}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._

/** The state watermark of a side of a join: rows up to this event time can no longer match a row of the other side. */
sealed trait JoinBound {

  /** The state watermark, in ms since 1970. */
  def watermark: Long
}

object JoinBound {

  /** The bound applies to an event time, or time window, in the join key. `ordinal` is the column of the key. */
  final case class InKey(ordinal: Int, watermark: Long) extends JoinBound

  /** The bound applies to an event time of the row. */
  final case class InRow(watermark: Long) extends JoinBound
}

/** Computes [[JoinBound]]s as Spark does for its own stream-stream joins. */
object JoinBounds {

  /** Columns and keys of both sides, the condition, a watermark in ms, and whether the first event time counts. */
  private[compat] type FindPredicates = (
      Seq[Attribute],
      Seq[Attribute],
      Seq[Expression],
      Seq[Expression],
      Option[Expression],
      Option[Long],
      Boolean) => JoinStateWatermarkPredicates

  /** Returns the bounds of the left and of the right side, for a watermark in ms. */
  def apply(
      left: Seq[Attribute],
      right: Seq[Attribute],
      leftKey: Seq[Expression],
      rightKey: Seq[Expression],
      condition: Option[Expression],
      watermark: Long): (Option[JoinBound], Option[JoinBound]) = {
    // of several event times of a side, the first counts
    val predicates =
      JoinPredicates.find(left, right, leftKey, rightKey, condition, Some(watermark), true)
    (predicates.left.map(boundOf), predicates.right.map(boundOf))
  }

  private def boundOf(predicate: JoinStateWatermarkPredicate): JoinBound = predicate match {
    case key: JoinStateKeyWatermarkPredicate =>
      val ordinal = key.expr.collectFirst { case column: BoundReference => column.ordinal }.get
      JoinBound.InKey(ordinal, JoinPredicates.watermarkOf(key))
    case row: JoinStateValueWatermarkPredicate =>
      JoinBound.InRow(JoinPredicates.watermarkOf(row))
  }

  /**
   * Returns the state watermark of `own` implied by the join condition, in ms; empty if the condition implies
   * no bound.
   */
  def ofCondition(
      own: Attribute,
      other: Seq[Attribute],
      condition: Option[Expression],
      watermark: Long): Option[Long] =
    StreamingJoinHelper.getStateValueWatermark(
      AttributeSet(own),
      AttributeSet(other),
      condition,
      Some(watermark))
}
