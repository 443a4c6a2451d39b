// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.{Ascending, AttributeSet}

import org.apache.spark.sql.changelog.inference.keys.UpsertKeys
import org.apache.spark.sql.changelog.inference.times.{EventTime, Monotonicity}
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, DescribeNode, SpreadSingleTasks}
import org.apache.spark.sql.changelog.plans.{Rank, RankFunction, RankStrategy, StateTable}
import org.apache.spark.sql.changelog.{ModifyKindSet, UpdateKind}

/**
 * Infers the changes of a rank: the best rows of each partition.
 *
 * A better row displaces others, so a rank inserts, updates and deletes even over insert-only
 * input. A rank is insert-only where no later row can be better. Without an order, the first rows
 * to arrive stay. In event-time order, the first row is final after the watermark passes it, and
 * append mode waits for the watermark. An ascending order on another column guarantees nothing.
 *
 * The strategies, in order of preference:
 *
 *   - first-come: the input is insert-only, and there is no order. The state is a row count per
 *     partition.
 *   - earliest: the first row by event time, in append mode.
 *   - append-fast: the input is insert-only. Rows beyond the last rank are dropped.
 *   - update-fast: the input updates by a key that contains the partition, and never deletes.
 *     Every update can only improve a row. Rows beyond the last rank are dropped, and before
 *     images are not needed.
 *   - retract: all rows are stored. Without a partition there are two levels, see
 *     [[SpreadSingleTasks]].
 */
object RankInference extends NodeInference[Rank] {
  override def kinds(rank: Rank, inputs: NodeInputs): ModifyKindSet = {
    val staysFirst = inputs.head.kinds.isInsertOnly &&
      (keepsFirstArrivals(rank) || inputs.appends && keepsEarliest(rank).isDefined)
    if (staysFirst) ModifyKindSet.InsertOnly else ModifyKindSet.All
  }

  /**
   * With rank numbers, or one row per partition, rows are replaced by slot. Before images can
   * then be omitted only by the slot key.
   */
  override def objection(node: InferredNode, key: AttributeSet): Option[String] = {
    val slot = UpsertKeys.slotKey(node.plan.asInstanceOf[Rank])
    if (slot.forall(_ == key)) None
    else {
      Some(
        s"${node.name} replaces rows by ${slot.map(DescribeNode.key(_)).mkString}, " +
          s"not by ${DescribeNode.key(key)}")
    }
  }

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val rank = node.plan.asInstanceOf[Rank]
    val partition = rank.partitionBy.map(DescribeNode.expression)
    def head(rows: String, bound: String) =
      StateTable("head", partition, rows, StateTable.boundedBy(bound))
    val best = head(s"first ${rank.end} rows", "the last rank")
    if (node.child.kinds.isInsertOnly && keepsFirstArrivals(rank)) {
      Decision(
        Seq(Demand.nothing),
        Some(RankStrategy.FirstCome.toString),
        Seq(StateTable("counts", partition, "rows so far", StateTable.unbounded)),
        Seq("insert-only input, and ranks without an order: the first rows to arrive stay"))
    } else if (waitsForWatermark(rank, node.kinds)) {
      val column = keepsEarliest(rank).mkString
      Decision(
        Seq(Demand.nothing),
        Some(RankStrategy.Earliest.toString),
        Seq(
          StateTable(
            "earliest",
            partition,
            "row, or a mark that the row was emitted",
            partitionBound(rank))),
        Seq(s"a row is emitted when the watermark on $column has passed it"))
    } else if (node.child.kinds.isInsertOnly) {
      Decision(
        Seq(Demand.nothing),
        Some(RankStrategy.AppendFast.toString),
        Seq(best),
        Seq("insert-only input: a row beyond the last rank never becomes visible again"))
    } else {
      updateFastKey(rank, node.child) match {
        case Right(key) =>
          Decision(
            Seq(
              Demand
                .newRowsBy(key, s"${node.name} replaces rows by key ${DescribeNode.key(key)}")),
            Some(RankStrategy.UpdateFast.toString),
            Seq(best),
            Seq("an update can only improve a rank: rows beyond the last rank are not needed"))
        case Left(why) =>
          Decision(
            Seq(Demand.bothImagesFor(rank)),
            Some(RankStrategy.Retract.toString),
            Seq(
              head("first rows", "some rows beyond the last rank"),
              StateTable("rows", partition :+ "row", "count", StateTable.unbounded)),
            levels(rank).toSeq :+ s"keeps all rows: $why")
      }
    }
  }

  private def levels(rank: Rank): Option[String] = (rank, rank.child) match {
    case (SpreadSingleTasks.LowerLevel(ways), _) =>
      Some(s"the first of two levels: the first ${rank.end} rows of each of $ways salts")
    case (_, SpreadSingleTasks.LowerLevel(ways)) =>
      Some(s"the second of two levels: its rows are the first ${rank.end} of each of $ways salts")
    case _ => None
  }

  /** Whether the rank stores all rows of an input, because visible rows may be deleted. */
  private[inference] def keepsAll(rank: Rank, input: InferredNode): Boolean =
    !input.kinds.isInsertOnly && updateFastKey(rank, input).isLeft

  private def partitionBound(rank: Rank): String =
    StateTable.boundedByWatermark(rank.partitionBy.flatMap(EventTime.columnOf).headOption)

  /** Returns the chosen strategy of a rank. */
  def strategy(rank: Rank, node: AnnotatedPlan): RankStrategy = {
    val input = node.children.head
    if (waitsForWatermark(rank, node.mode.kinds)) RankStrategy.Earliest
    else if (input.mode.isInsertOnly) {
      if (keepsFirstArrivals(rank)) RankStrategy.FirstCome else RankStrategy.AppendFast
    } else if (input.required == UpdateKind.OnlyUpdateAfter) RankStrategy.UpdateFast
    else RankStrategy.Retract
  }

  /** Whether the rank holds a row until no better row can arrive. */
  private def waitsForWatermark(rank: Rank, produced: ModifyKindSet): Boolean =
    produced.isInsertOnly && !keepsFirstArrivals(rank)

  /** Whether the first rows to arrive keep their ranks. */
  private def keepsFirstArrivals(rank: Rank): Boolean =
    rank.orderBy.isEmpty && rank.function == RankFunction.RowNumber

  /** Returns the event-time column whose earliest row is kept. */
  private def keepsEarliest(rank: Rank): Option[String] = rank.orderBy match {
    case Seq(order)
        if rank.function == RankFunction.RowNumber && rank.start == 1 && rank.end == 1 &&
          rank.rankNumber.isEmpty && order.direction == Ascending =>
      EventTime.columnOf(order.child)
    case _ => None
  }

  /**
   * Returns the key to replace rows by, or the reason why rows beyond the last rank must be
   * stored.
   */
  private def updateFastKey(rank: Rank, input: InferredNode): Either[String, AttributeSet] = {
    val partition = AttributeSet(rank.partitionBy)
    if (input.kinds.delete) {
      Left("a delete moves the next row up")
    } else if (rank.function == RankFunction.DenseRank) {
      Left("when the last row of a value disappears, the next value takes the rank")
    } else if (!rank.orderBy.forall(Monotonicity.onlyImproves(input, _))) {
      Left("an update can worsen a row's rank")
    } else {
      val keys = input.upsertKeys.filter(partition.subsetOf(_))
      keys.find(input.objection(_).isEmpty) match {
        case Some(key) => Right(key)
        case None =>
          Left(
            keys
              .flatMap(input.objection(_))
              .headOption
              .getOrElse("no key of the input contains the partition columns"))
      }
    }
  }
}
