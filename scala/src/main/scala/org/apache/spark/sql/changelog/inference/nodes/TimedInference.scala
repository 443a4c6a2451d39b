// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.{AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.inference.times.{ClosingTimes, EventTime, TemporalCondition}
import org.apache.spark.sql.changelog.plans.{
  EmitOnClose, FromChangelog, Rank, RowTtl, StateTable, TemporalFilter
}
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Infers the changes of a temporal filter. Rows enter and leave over time, so the result may
 * insert and delete, whatever the input does. With conditions that only become true, rows never
 * leave.
 */
object TemporalFilterInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[TemporalFilter]

  /** The old version of a row may pass the filter while the new version does not. */
  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = {
    val conditions = plan.asInstanceOf[TemporalFilter].conditions
    val deletes = !conditions.forall(TemporalCondition.onlyBecomesTrue)
    inputs.head.kinds.union(ModifyKindSet.InsertOnly.copy(delete = deletes))
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    Some(s"${node.name} needs the old row to retract rows that no longer pass")

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val conditions = node.plan.asInstanceOf[TemporalFilter].conditions
    val (appearing, others) = conditions.partition(TemporalCondition.onlyBecomesTrue)
    val (disappearing, either) = others.partition(TemporalCondition.onlyBecomesFalse)
    val appear =
      if (appearing.isEmpty) None else Some(s"rows appear once ${texts(appearing)} becomes true")
    val disappear =
      if (disappearing.isEmpty) None
      else Some(s"rows disappear once ${texts(disappearing)} becomes false")
    val appearAndDisappear =
      if (either.isEmpty) None
      else Some(s"rows appear and disappear as time changes ${texts(either)}")
    Decision(
      Seq(Demand.bothImagesFor(node.plan)),
      Some("wait for the next time a row appears or disappears"),
      Seq(StateTable("rows", Seq("time", "row"), "count, shown", "the time")),
      appear.toSeq ++ disappear ++ appearAndDisappear)
  }

  private def texts(conditions: Seq[Expression]): String =
    conditions.map(DescribeNode.expression).mkString(" and ")
}

/** Infers the changes of a row TTL: deletes of unchanged rows, whatever the input does. */
object RowTtlInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[RowTtl]

  /** The old version of a row may have expired before the new version arrives. */
  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet =
    inputs.head.kinds.union(ModifyKindSet.InsertOnly.copy(delete = true))

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    Some(s"${node.name} needs the old row to know whether the row has expired")

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val ttl = Utils.msDurationToString(node.plan.asInstanceOf[RowTtl].ttl)
    Decision(
      Seq(Demand.bothImagesFor(node.plan)),
      Some("wait for the next time a row expires"),
      Seq(
        StateTable("rows", Seq("time", "row"), "count", s"retracted $ttl after the last change")),
      Seq(s"rows expire $ttl after the last change"))
  }
}

/**
 * Infers the changes of emit on close: each row once, after the watermark passes the event time
 * and the row is final.
 */
object EmitOnCloseInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[EmitOnClose]

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = ModifyKindSet.InsertOnly

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val closing = node.plan.asInstanceOf[EmitOnClose]
    val columns = closing.times.map(DescribeNode.eventTime).mkString(" and ")
    val times = DescribeNode.closingTimes(closing)
    val latest =
      if (times.size == 1) times.head else times.mkString("the latest of ", " and ", "")
    Decision(
      Seq(Demand.bothImagesFor(closing)),
      Some("hold rows until the watermark has passed them"),
      Seq(StateTable("rows", Seq("time", "row"), "count", s"watermark on $columns")),
      Seq(s"a row is emitted when the watermark has passed $latest"))
  }

  /**
   * Returns the query `node` with emit on close, if the rows have an event time. Fails if rows
   * can change after the watermark has passed.
   */
  def over(node: InferredNode): Option[EmitOnClose] = {
    val times = ClosingTimes(node).filter(_.latestOf.nonEmpty)
    times.minByOption(time => (time.latestOf.size, time.latestOf.map(_.delay).max)) match {
      case Some(time) =>
        val output = node.plan.output
        Some(
          EmitOnClose(time.latestOf.map(_.time(output)), time.latestOf.map(_.delay), node.plan))
      case None =>
        node.plan.output.flatMap(EventTime.columnOf(_)).headOption.map { column =>
          val (obstacle, reason) = changing(node)
          throw analysis(
            "CHANGELOG_RESULT_NOT_FINAL",
            "column" -> column,
            "node" -> obstacle.name,
            "reason" -> reason)
        }
    }
  }

  /** Returns the first node whose rows are never final, with the reason. */
  private def changing(node: InferredNode): (InferredNode, String) =
    node.plan match {
      case _: FromChangelog | _: LeafNode =>
        node -> "no column read by the query is an event time with a watermark"
      case _ =>
        node.children.find(ClosingTimes(_).isEmpty) match {
          case Some(child) => changing(child)
          case None => node -> reason(node.plan)
        }
    }

  private def reason(plan: LogicalPlan): String = plan match {
    case _: Join =>
      "the join condition does not limit the time in which a row can find or lose a match: " +
        "compare the event times of both sides, as columns, in the condition"
    case _: Rank | _: Window | _: WindowGroupLimit =>
      "a later row of a partition changes the results of earlier rows: partition by the event " +
        "time, or by a window of the event time"
    case _: Aggregate => "the aggregate does not group by the event time of the input"
    case _: Project => "the node omits the event time of the input"
    case _: Union => "the inputs do not have the event times in the same columns"
    case _ => "the event times that the rows depend on are not known"
  }
}
