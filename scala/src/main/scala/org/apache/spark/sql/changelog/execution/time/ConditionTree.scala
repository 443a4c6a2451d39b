// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._

import org.apache.spark.sql.changelog.plans.PassingTime

/**
 * When a row changes by itself, as comparisons say that are joined by AND and OR.
 *
 * {{{
 *   at > now() OR now() > until OR pinned
 *
 *   ─────────────┐ at          until ┌──────────────     pinned is false
 *       in       └───────────────────┘      in
 *   ────────────────────────────────────────────────     pinned is true
 * }}}
 * It may come and go several times, whenever one of the comparisons changes. It is looked for the next
 * time at which that makes a difference to the whole.
 */
private[time] final class ConditionTree(conditions: Seq[Expression], input: Seq[Attribute])
    extends RowTimes {
  import ConditionTree._
  import RowTimes._

  private val comparisons = mutable.ArrayBuffer.empty[Comparison]
  private val root = AllOf(conditions.map(conditionOf))

  override def find(row: InternalRow): Unit = root.find(row)

  override def isShown(row: InternalRow, at: Long): Boolean = root.isMet(row, at)

  override def place(now: Long): Long = root.at(now) match {
    case Unknown => Unsettled
    case value =>
      val changes = comparisons.iterator.map(_.times.changesFrom).filter(_ > now).toArray.sorted
      changes
        .find(time => time != ConditionTimes.Never && root.at(time) != value)
        .getOrElse(if (value == Met) Stays else Gone)
  }

  private def conditionOf(condition: Expression): Condition = condition match {
    case And(left, right) => AllOf(Seq(conditionOf(left), conditionOf(right)))
    case Or(left, right) => AnyOf(Seq(conditionOf(left), conditionOf(right)))
    case _ if PassingTime.isIn(condition) =>
      val comparison = new Comparison(new ConditionTimes(condition, input))
      comparisons += comparison
      comparison
    case _ => new Fixed(Predicate.create(condition, input))
  }
}

private object ConditionTree {

  /** What is known about a condition at a time. */
  private type Known = Int
  private val NotMet = 0
  private val Unknown = 1
  private val Met = 2

  private sealed trait Condition {
    def find(row: InternalRow): Unit
    def isMet(row: InternalRow, at: Long): Boolean

    /** For the row whose times were looked for. */
    def at(time: Long): Known
  }

  private case class AllOf(conditions: Seq[Condition]) extends Condition {
    override def find(row: InternalRow): Unit = conditions.foreach(_.find(row))
    override def isMet(row: InternalRow, at: Long): Boolean = conditions.forall(_.isMet(row, at))
    override def at(time: Long): Known = conditions.iterator.map(_.at(time)).min
  }

  private case class AnyOf(conditions: Seq[Condition]) extends Condition {
    override def find(row: InternalRow): Unit = conditions.foreach(_.find(row))
    override def isMet(row: InternalRow, at: Long): Boolean = conditions.exists(_.isMet(row, at))
    override def at(time: Long): Known = conditions.iterator.map(_.at(time)).max
  }

  private class Comparison(val times: ConditionTimes) extends Condition {
    override def find(row: InternalRow): Unit = times.find(row)
    override def isMet(row: InternalRow, at: Long): Boolean = times.isMet(row, at)
    override def at(time: Long): Known =
      if (time >= times.settledFrom) known(times.comes)
      else if (time >= times.changesFrom) Unknown
      else known(!times.comes)
  }

  /** Does not depend on the time. */
  private class Fixed(predicate: BasePredicate) extends Condition {
    private var value = NotMet
    predicate.initialize(0)

    override def find(row: InternalRow): Unit = value = known(predicate.eval(row))
    override def isMet(row: InternalRow, at: Long): Boolean = predicate.eval(row)
    override def at(time: Long): Known = value
  }

  private def known(isMet: Boolean): Known = if (isMet) Met else NotMet
}
