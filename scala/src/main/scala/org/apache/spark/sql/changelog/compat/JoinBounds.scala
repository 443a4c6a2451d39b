// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper
import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  AttributeSet,
  BoundReference,
  Expression
}
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._

/** Up to which event time no row of the other side of a join can meet those of a side any more. */
sealed trait JoinBound {

  /** That time, in ms since 1970. */
  def watermark: Long
}

object JoinBound {

  /** By an event time, or a window of one, in the join key: which column of the key that is. */
  final case class InKey(ordinal: Int, watermark: Long) extends JoinBound

  /** By an event time of rows. */
  final case class InRow(watermark: Long) extends JoinBound
}

/** Finds [[JoinBound]]s as Spark does for joins of streams of its own. */
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

  /** The bounds of the left and of the right side, for a watermark in ms. */
  def apply(
      left: Seq[Attribute],
      right: Seq[Attribute],
      leftKey: Seq[Expression],
      rightKey: Seq[Expression],
      condition: Option[Expression],
      watermark: Long): (Option[JoinBound], Option[JoinBound]) = {
    // of several event times on a side the first one counts
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
   * The state watermark of `own` implied by the join condition, in ms; none if the condition implies none.
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
