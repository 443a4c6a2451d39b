// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.OutputMode
import org.apache.spark.sql.changelog.inference.nodes.{AggregateState, RecomputeInference}
import org.apache.spark.sql.changelog.plans._

/**
 * Finds risks of a query before the query starts: costs that grow with the data, each with a
 * remedy.
 *
 *   - State that grows without bound: no watermark or TTL bounds the table, and the input is
 *     insert-only. A table over an input with deletes is no risk: its size is the input's.
 *   - All rows stored by one task, without columns to distribute rows by. Aggregates combined
 *     before the shuffle and ranks in two levels are exempt.
 *   - A whole group recomputed for each change in the group.
 *   - A join without an equality. The join compares every left row with every right row.
 *   - Before images sent only because the reader is in retract mode, where upsert mode would
 *     do.
 */
private[inference] object Risks {

  /** Returns the risks of one node, as sentences. */
  def apply(node: AnnotatedPlan): Seq[String] =
    if (node.state.isEmpty) Nil
    else {
      Seq(growth(node), singleTask(node), recomputation(node), noEquality(node)).flatten.map {
        risk => s"${DescribeNode.short(node.plan)} $risk"
      }
    }

  /** Returns the risks of the reader's mode. */
  def ofReader(root: AnnotatedPlan): Seq[String] = root.plan match {
    case reader: ToChangelog if reader.mode == OutputMode.Retract && createsBeforeImages(root) =>
      root.children.head.upsertKeys
        .map(root.children.head.ordered)
        .find { key =>
          val upsert = reader.copy(mode = OutputMode.Upsert, key = key)
          !emitsBeforeImages(InferChangelogMode(upsert))
        }
        .map { key =>
          "only the reader needs -U: if the reader can replace rows by " +
            s"${DescribeNode.key(key)}, use mode => 'upsert'"
        }
        .toSeq
    case _ => Nil
  }

  private def createsBeforeImages(node: AnnotatedPlan): Boolean =
    node.state.nonEmpty && node.mode.symbols.contains("UB") ||
      node.children.exists(createsBeforeImages)

  private def emitsBeforeImages(node: AnnotatedPlan): Boolean =
    node.mode.symbols.contains("UB") || node.children.exists(emitsBeforeImages)

  private def growth(node: AnnotatedPlan): Option[String] = {
    val growing = node.state.zipWithIndex.collect {
      case (table, index)
          if table.boundedBy == StateTable.Unbounded && table.key.nonEmpty &&
            inputsOf(node, table, index).exists(_.mode.isInsertOnly) =>
        s"${table.table} by ${table.key.mkString("(", ", ", ")")}"
    }
    node.plan match {
      // Normalize stores as many rows as the table has.
      case _: FromChangelog => None
      case _ if growing.isEmpty => None
      case plan =>
        Some(
          s"keeps ${growing.mkString(" and ")} without bound, over insert-only input. " +
            s"To bound the state, ${bound(plan)}, or set spark.sql.changelog.state.ttl")
    }
  }

  /** Returns the inputs whose rows `table` stores. */
  private def inputsOf(node: AnnotatedPlan, table: StateTable, index: Int): Seq[AnnotatedPlan] =
    node.children match {
      case Seq(left, _) if node.state.size == 1 && table.table.startsWith("left") => Seq(left)
      case Seq(_, right) if node.state.size == 1 && table.table.startsWith("right") =>
        Seq(right)
      case children if children.size == node.state.size => Seq(children(index))
      case children => children
    }

  private def bound(plan: LogicalPlan): String = plan match {
    case _: Join | _: TemporalJoin =>
      "join on event times of both sides, with watermarks"
    case _: Aggregate => "group by an event time with a watermark"
    case _ => "partition by an event time with a watermark"
  }

  private def singleTask(node: AnnotatedPlan): Option[String] = {
    val what = node.plan match {
      case agg: Aggregate if agg.groupingExpressions.isEmpty && keepsSeveral(node) =>
        Some("groups")
      case rank: Rank
          if rank.partitionBy.isEmpty && !SpreadSingleTasks.isUpper(rank) &&
            node.strategy.contains(RankStrategy.Retract.toString) =>
        Some("partitions")
      case _: Rank | _: Aggregate => None
      case plan => partitions(plan).filter(_.isEmpty).map(_ => "partitions")
    }
    what.map(parts => s"keeps all rows in one task, because it has no $parts")
  }

  private def keepsSeveral(node: AnnotatedPlan): Boolean = {
    val splits = node.strategy.exists(_.contains(AggregateState.SplitDistinct))
    node.state.exists { table =>
      table.key.nonEmpty && !(splits && table.table.startsWith("distinct"))
    }
  }

  private def partitions(plan: LogicalPlan): Option[Seq[Expression]] = plan match {
    case window: Window => Some(window.partitionSpec)
    case limit: WindowGroupLimit => Some(limit.partitionSpec)
    case GroupedMap(map) => map.groups.headOption
    case _ => None
  }

  private def recomputation(node: AnnotatedPlan): Option[String] = {
    val strategy = node.strategy.getOrElse("")
    if (strategy.startsWith(AggregateState.Recomputed)) {
      Some(
        "recomputes a whole group for each change in the group. Sums, counts, averages, min, " +
          "max and their DISTINCT forms avoid a recompute")
    } else if (strategy == RecomputeInference.RecomputeTouched) {
      Some(
        "recomputes a whole partition for each change in the partition, so large partitions " +
          "slow down batches")
    } else None
  }

  private def noEquality(node: AnnotatedPlan): Option[String] = {
    val isMissing = node.plan match {
      case join: Join => EquiJoin(join).pairs.isEmpty
      case join: TemporalJoin => join.leftKey.isEmpty
      case _ => false
    }
    Option.when(isMissing)(SkewedSide.of(node.plan) match {
      case Some(spread) =>
        val (one, other) = if (spread.isLeft) ("left", "right") else ("right", "left")
        s"joins without an equality: each change is compared with all rows of the other side, and $other " +
          s"rows are stored ${spread.ways} times, once for each part of the $one rows. " +
          "A condition left.x = right.x avoids both"
      case None =>
        "joins without an equality: one task keeps all rows, and compares each change with all " +
          "rows. A condition left.x = right.x distributes the rows"
    })
  }
}
