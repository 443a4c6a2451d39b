// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.{
  AttributeSet, Expression, RowOrdering, SortOrder
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.errors.ChangelogErrors.{analysis, argumentInvalid}
import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.inference.times.{
  ClosingTime, ClosingTimes, EventTime, TemporalCondition
}
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Infers the changes of a temporal filter. Rows enter and leave over time, so the result may
 * insert and delete, whatever the input does. With conditions that only become true, rows never
 * leave.
 */
object TemporalFilterInference extends NodeInference[TemporalFilter] {

  /** The old version of a row may pass the filter while the new version does not. */
  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(filter: TemporalFilter, inputs: NodeInputs): ModifyKindSet = {
    val conditions = filter.conditions
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
object RowTtlInference extends NodeInference[RowTtl] {

  /** The old version of a row may have expired before the new version arrives. */
  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(hint: RowTtl, inputs: NodeInputs): ModifyKindSet =
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
 * Infers the changes of held changes. On close, each row is emitted once, after the watermark
 * passes the event time and the row is final. With corrections, and with an interval, net changes
 * are emitted.
 */
object EmitInference extends NodeInference[Emit] {

  /** The old version of a row may be emitted earlier than the new version. */
  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(emit: Emit, inputs: NodeInputs): ModifyKindSet = {
    val emission = emit.emission
    if (emission == Emission.OnClose(0) || inputs.head.kinds.isInsertOnly)
      ModifyKindSet.InsertOnly
    else ModifyKindSet.All
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    Some(s"${node.name} needs the old row to net the held changes")

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val emit = node.plan.asInstanceOf[Emit]
    def length(ms: Long) = Utils.msDurationToString(ms)
    val columns = emit.times.map(DescribeNode.eventTime).mkString(" and ")
    val times = DescribeNode.closingTimes(emit)
    val latest =
      if (times.size == 1) times.head else times.mkString("the latest of ", " and ", "")
    val (until, bound, reasons) = emit.emission match {
      case Emission.Every(interval) =>
        val text = s"net changes are emitted every ${length(interval)}"
        (s"${length(interval)} have passed since the last emission", "the emission", Seq(text))
      case closing =>
        val corrected = Some(closing).collect {
          case Emission.OnClose(corrections) if corrections > 0 =>
            s"changes of emitted rows are emitted for ${length(corrections)} more"
        }
        val passed = s"a row is emitted when the watermark has passed $latest"
        val ordered =
          Option.when(emit.order.nonEmpty)(s"one task emits rows in the order of $columns")
        val reasons = passed +: (corrected ++ ordered).toSeq
        ("the watermark has passed them", s"watermark on $columns", reasons)
    }
    Decision(
      Seq(Demand.bothImagesFor(emit)),
      Some(s"hold rows until $until"),
      Seq(StateTable("rows", Seq("time", "row"), "count", bound)),
      reasons)
  }

  /** Returns the query `node` with emissions at an interval, if `root` asks for them. */
  def every(root: ToChangelog, node: InferredNode): Option[Emit] = root.emission match {
    case every: Emission.Every if !node.isStatic =>
      val order = Some(node.plan).collect { case Emit(_, _, _, order, _) => order }
      Some(Emit(every, Nil, Nil, order.getOrElse(Nil), node.plan))
    case _ => None
  }

  /**
   * Returns the query `node` with emit on close, if `root` asks for it or takes only inserts, and
   * the rows have an event time. Fails if rows can change after the watermark has passed.
   */
  def onClose(root: ToChangelog, node: InferredNode): Option[Emit] = root.emission match {
    case corrected @ Emission.OnClose(corrections) if corrections > 0 && !node.isStatic =>
      over(corrected, node).orElse(throw withoutTime(node))
    case _ if root.mode == OutputMode.Append && !node.isStatic =>
      inOrder(root.order, node).orElse {
        if (node.kinds.changesRows) over(Emission.OnClose(corrections = 0), node) else None
      }
    case _ => None
  }

  private def withoutTime(node: InferredNode): AnalysisException =
    argumentInvalid(
      "to_changelog",
      "emit",
      "'on close, then corrections'",
      "no column of the query is an event time: set a watermark on a source, with withWatermark, " +
        s"and keep the column, or its window, in the result ${DescribeNode.key(node.plan.output)}")

  /** Returns emit on close in this order, if the event time of the order is a closing time. */
  private def inOrder(order: Seq[SortOrder], node: InferredNode): Option[Emit] =
    for {
      first <- order.headOption
      time <- ClosingTimes(node).find(_.latestOf.map(_.columns) == Seq(first.references))
    } yield at(Emission.OnClose(corrections = 0), time, order, node)

  private def at(
      emission: Emission,
      time: ClosingTime,
      order: Seq[SortOrder],
      node: InferredNode): Emit = {
    val closing = time.latestOf.map(_.time(node.plan.output))
    Emit(emission, closing, time.latestOf.map(_.delay), order, node.plan)
  }

  private def over(emission: Emission, node: InferredNode): Option[Emit] = {
    val times = ClosingTimes(node).filter(_.latestOf.nonEmpty)
    times.minByOption(time => (time.latestOf.size, time.latestOf.map(_.delay).max)) match {
      case Some(time) => Some(at(emission, time, Nil, node))
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

/**
 * Infers the changes of a history by commit: an update closes the interval of the old row and opens one for the new
 * row. The operator stores the current version of each key.
 */
object HistoryInference extends NodeInference[CommitHistory] {
  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(history: CommitHistory, inputs: NodeInputs): ModifyKindSet = {
    keyOf(history, inputs.head.upsertKeys)
    ModifyKindSet.All
  }

  /** Returns the columns that identify a row of the input. Fails without such columns. */
  def keyOf(history: CommitHistory, keys: Seq[AttributeSet]): AttributeSet = {
    val told = AttributeSet(history.key)
    val usable = keys.filter(_.forall { column =>
      UnsafeRowUtils.isBinaryStable(column.dataType) && RowOrdering.isOrderable(column.dataType)
    })
    if (history.key.nonEmpty && usable.exists(_.subsetOf(told))) told
    else if (history.key.isEmpty && usable.nonEmpty) usable.head
    else
      throw analysis(
        "CHANGELOG_HISTORY_KEY_MISSING",
        "key" -> (if (history.key.isEmpty) "none" else DescribeNode.key(history.key)),
        "keys" -> keys.map(DescribeNode.key(_)))
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    Some(s"${node.name} needs the old row to close its interval")

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val key = keyOf(node.plan.asInstanceOf[CommitHistory], node.child.upsertKeys)
    Decision(
      Seq(Demand.bothImagesFor(node.plan)),
      Some("open and close intervals"),
      Seq(StateTable("rows", key.map(_.name).toSeq, "row, start", StateTable.unbounded)))
  }
}
