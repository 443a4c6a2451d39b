// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.TimestampType

import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.plans.{StateTable, TemporalJoin}
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Joins of each left row with the version of its time.
 *
 * A version that comes late or goes changes the left rows of its time, so anything can happen to
 * the result even if both inputs only insert. A reader that takes new rows only gets each left row
 * when the watermark has passed it, when no version of its time can come any more; that needs event
 * times on both sides.
 */
object TemporalJoinInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[TemporalJoin]

  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = {
    val join = plan.asInstanceOf[TemporalJoin]
    val canWait = inputs.forall(_.kinds.isInsertOnly) && eventTimes(join).isDefined
    if (mode == OutputMode.Append && canWait) ModifyKindSet.InsertOnly else ModifyKindSet.All
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    Some(s"${node.name} emits the old row where a version changes")

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val join = node.plan.asInstanceOf[TemporalJoin]
    val bounds = eventTimes(join).toSeq.flatMap { case (left, right) => Seq(left, right) }
    def table(name: String, key: Seq[Expression], time: Expression, index: Int) = StateTable(
      name,
      (key :+ time).map(DescribeNode.expression) :+ "row",
      "count",
      bounds
        .lift(index)
        .map(column => s"a watermark on ${column.name}")
        .getOrElse(StateTable.unbounded))
    val strategy =
      if (node.kinds.isInsertOnly) "look up the version once it is certain"
      else "look up the version by time"
    val reasons =
      if (node.kinds.isInsertOnly) {
        val column = bounds.map(_.name).distinct.mkString(" and ")
        Seq(s"a row is emitted when the watermark on $column has passed it")
      } else Nil
    Decision(
      Seq.fill(2)(Demand.takesBack(join)),
      Some(strategy),
      Seq(
        table("left rows", join.leftKey, join.leftTime, 0),
        table("versions", join.rightKey, join.rightTime, 1)),
      reasons ++
        (if (join.leftKey.isEmpty)
           Seq("no equality between the sides: all rows meet in one partition")
         else Nil))
  }

  /** The event times of both sides, where a watermark tells which versions are certain. */
  def eventTimes(join: TemporalJoin): Option[(Attribute, Attribute)] =
    if (join.isForward) None
    else {
      for {
        left <- eventTime(join.left, join.leftTime)
        right <- eventTime(join.right, join.rightTime)
      } yield (left, right)
    }

  private def eventTime(side: LogicalPlan, time: Expression): Option[Attribute] =
    side.output.find { column =>
      column.semanticEquals(time) && column.dataType == TimestampType &&
      EventTime.columnOf(column).isDefined
    }
}
