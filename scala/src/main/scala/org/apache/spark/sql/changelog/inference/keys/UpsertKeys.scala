// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.keys

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.inference.EquiJoin
import org.apache.spark.sql.changelog.plans.{
  ChangelogStatic, CommitHistory, Emit, FromChangelog, GroupValue, KeyedVersions, LookupJoin,
  Rank, RankFunction, RowTtl, TemporalFilter, TemporalJoin, ToChangelog
}

/**
 * UpsertKeys: derives the columns that identify a row of each node's output from the keys of the
 * inputs.
 *
 * An upsert key guarantees distinct key values at the end of a batch. In some systems, changes
 * overtake each other in a shuffle. A key must then contain the shuffle columns, or versions of a
 * row arrive out of order. Here a batch is applied as a whole and netted by key, so keys survive
 * every exchange.
 *
 * The result holds only minimal keys: no key contains a second key. The empty key means at most
 * one row.
 */
object UpsertKeys {

  /**
   * Returns the keys of `plan`, smallest first and then by column position, from the keys of each
   * input.
   */
  def apply(plan: LogicalPlan, inputs: Seq[Seq[AttributeSet]]): Seq[AttributeSet] = {
    val keys = derive(plan, inputs)
      .filter(_.subsetOf(plan.outputSet))
      .map(key => AttributeSet(plan.output.filter(key.contains)))
      .distinct
    val position = plan.output.map(_.exprId).zipWithIndex.toMap
    keys
      .filterNot(key => keys.exists(other => other != key && other.subsetOf(key)))
      .map(key => key -> key.iterator.map(column => position(column.exprId)).toSeq)
      .sortBy { case (_, positions) => (positions.size, positions.map(p => f"$p%06d").mkString) }
      .map(_._1)
  }

  private def derive(plan: LogicalPlan, inputs: Seq[Seq[AttributeSet]]): Seq[AttributeSet] =
    plan match {
      case source: FromChangelog => if (source.key.isEmpty) Nil else Seq(AttributeSet(source.key))
      case range: Range => Seq(range.outputSet)
      case leaf: LeafNode => if (isOneRow(leaf)) Seq(AttributeSet.empty) else Nil
      case agg: Aggregate => ofGroups(agg)
      case join: Join => ofJoin(join, inputs(0), inputs(1))
      case _: TemporalJoin => inputs(0)
      case _: TemporalFilter | _: RowTtl | _: Emit => inputs.head
      case versions: KeyedVersions => AttributeSet(versions.key) +: inputs.head
      case history: CommitHistory =>
        val keys = if (history.key.isEmpty) inputs.head else Seq(AttributeSet(history.key))
        keys.map(_ + history.validity.head)
      case join: LookupJoin => ofJoin(join.toJoin, inputs(0), inputs(1))
      case rank: Rank => ofRank(rank, inputs.head)
      case _: Generate | _: BaseEvalPythonUDTF => Nil
      case sample: Sample => if (sample.withReplacement) Nil else inputs.head
      case project: Project =>
        ProjectKeys.outputKeys(project, inputs.head) ++ CoalescedKeys(project, inputs.head)
      case _: Filter | _: Expand | _: Sort | _: EventTimeWatermark | _: Window |
          _: RepartitionOperation | _: RebalancePartitions | _: CollectMetrics |
          _: UpdateEventTimeWatermarkColumn | _: ToChangelog | _: BaseEvalPython |
          _: AppendColumns | _: SubqueryAlias | _: View | _: Subquery | _: ResolvedHint |
          _: ChangelogStatic =>
        ProjectKeys.outputKeys(plan, inputs.head)
      case _ => Nil
    }

  private def isOneRow(plan: LogicalPlan): Boolean =
    !plan.isStreaming && plan.maxRows.exists(_ <= 1)

  /** Returns the grouping columns, under each of their output names. */
  private def ofGroups(agg: Aggregate): Seq[AttributeSet] = {
    val names = agg.groupingExpressions.filterNot(_.foldable).map { group =>
      agg.aggregateExpressions.collect {
        case column: Attribute if column.semanticEquals(group) => column
        case alias @ Alias(child, _) if child.semanticEquals(group) => alias.toAttribute
        case alias @ Alias(AggregateExpression(GroupValue(shown), _, _, _, _), _)
            if CollationKey.injectCollationKey(shown).semanticEquals(group) =>
          alias.toAttribute
        case alias: Alias if isCarried(alias, group) => alias.toAttribute
      }
    }
    ProjectKeys.combinations(names).map(AttributeSet(_))
  }

  private def isCarried(alias: Alias, group: Expression): Boolean =
    ProjectKeys.carriedColumn(alias).exists(_.semanticEquals(group))

  /**
   * Returns the inputs' keys and the slot key. The slot key is the partition and the rank number,
   * or the partition alone if the rank keeps one row.
   */
  private def ofRank(rank: Rank, input: Seq[AttributeSet]): Seq[AttributeSet] =
    slotKey(rank).toSeq ++ input

  /**
   * Returns the columns that identify the slot of a row of `rank`, if each slot holds one row.
   */
  def slotKey(rank: Rank): Option[AttributeSet] = {
    val partition = rank.partitionBy.filterNot(_.foldable).map(ProjectKeys.carriedColumn)
    if (rank.function != RankFunction.RowNumber || partition.exists(_.isEmpty)) None
    else if (rank.start == rank.end) Some(AttributeSet(partition.flatten))
    else rank.rankNumber.map(number => AttributeSet(partition.flatten :+ number))
  }

  private def ofJoin(
      join: Join,
      left: Seq[AttributeSet],
      right: Seq[AttributeSet]): Seq[AttributeSet] = {
    val equi = EquiJoin(join)
    // Whether each row of the opposite side has at most one match.
    val meetsOneLeft = left.exists(_.subsetOf(equi.columns(left = true)))
    val meetsOneRight =
      join.joinType == LeftSingle || right.exists(_.subsetOf(equi.columns(left = false)))
    val pairs = for (l <- left; r <- right) yield l ++ r
    join.joinType match {
      case LeftExistence(_) => left
      case _: InnerLike =>
        val keys =
          pairs ++ (if (meetsOneRight) left else Nil) ++ (if (meetsOneLeft) right else Nil)
        keys ++ keys.flatMap(renamed(_, equi))
      case LeftOuter | LeftSingle => pairs ++ (if (meetsOneRight) left else Nil)
      case RightOuter => pairs ++ (if (meetsOneLeft) right else Nil)
      case FullOuter =>
        // A left padding row and a right padding row must differ in the key.
        pairs.filter(_.exists(column => isNeverNull(join.left, column))) ++
          pairs.filter(_.exists(column => isNeverNull(join.right, column)))
      case _ => Nil
    }
  }

  /** Returns the key with one column replaced by its equal column of the opposite side. */
  private def renamed(key: AttributeSet, equi: EquiJoin): Seq[AttributeSet] =
    equi.pairs.collect {
      case (l: Attribute, r: Attribute) if key.contains(l) && !key.contains(r) => (key - l) + r
      case (l: Attribute, r: Attribute) if key.contains(r) && !key.contains(l) => (key - r) + l
    }

  /** Whether `column` of `plan` is never NULL. The declared key of a source is never NULL. */
  private[inference] def isNeverNull(plan: LogicalPlan, column: Attribute): Boolean = plan match {
    case _ if !plan.outputSet.contains(column) => false
    case _ if !plan.output.exists(o => o.exprId == column.exprId && o.nullable) => true
    case source: FromChangelog => source.key.exists(_.exprId == column.exprId)
    case Join(left, _, LeftOuter | LeftSingle | LeftExistence(_), _, _) =>
      isNeverNull(left, column)
    case Join(_, right, RightOuter, _, _) => isNeverNull(right, column)
    case Join(_, _, FullOuter, _, _) => false
    case project: Project =>
      ProjectKeys
        .inputKey(project, AttributeSet(column))
        .exists(_.forall(isNeverNull(project.child, _)))
    case _: Union => false
    case _ => plan.children.exists(isNeverNull(_, column))
  }
}
