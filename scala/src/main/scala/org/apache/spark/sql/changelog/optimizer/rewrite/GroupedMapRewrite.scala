// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.{IntegerType, Metadata}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, GroupedMap}
import org.apache.spark.sql.changelog.microbatch.ReplayedVersions
import org.apache.spark.sql.changelog.plans._

/**
 * Calls a grouped map function again for each changed group.
 *
 * {{{
 *   FlatMapGroupsInPandas [k] f    =>   ChangelogConsolidate
 *   +- t  [I,UB,UA,D]                   +- ChangelogConsolidate in place
 *                                          +- ChangelogVersions
 *                                             :- ChangelogReplay [k]
 *                                             :  +- t  [I,UB,UA,D]
 *                                             :- FlatMapGroupsInPandas [k] f
 *                                             :  +- ReplayedVersion +I
 *                                             +- FlatMapGroupsInPandas [k] f
 *                                                +- ReplayedVersion -D
 * }}}
 *
 * The function's results do not name a version of the rows, so Spark's operator stands in the
 * plan twice.
 *
 * The rows of cogrouped inputs are stored together, and a change on either side replays the whole
 * group. Each row has the number of its side, and NULL in the columns of the opposite side.
 *
 * If groups are emitted once, after the watermark closes them, only the last version is replayed,
 * without netting.
 */
private[optimizer] object GroupedMapRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = GroupedMap.returnsRows(node.plan)

  override def inputs(node: AnnotatedPlan): Seq[AnnotatedPlan] = mapOf(node).children

  private def mapOf(node: AnnotatedPlan): AnnotatedPlan = node.plan match {
    case GroupedMap(_) => node
    case _ => mapOf(node.children.head)
  }

  override def apply(context: RewriteContext): LogicalPlan = {
    import context.{ids, input, node}
    val map = mapOf(node).plan
    val GroupedMap(grouped) = map
    val rows =
      if (context.inputs.size == 1) ofOne(map, grouped, input)
      else ofTwo(map, grouped, context.inputs)
    val waits = node.mode.isInsertOnly
    val replay = ChangelogReplay(
      rows.partition,
      rows.side.map(SortOrder(_, Ascending)).toSeq ++ grouped.orders.flatten,
      RowKind.find(rows.plan.output),
      RowKind.newAttribute(),
      ids.next(),
      rows.plan,
      emitsClosed = waits)
    val positions = replay.output.map(_.exprId).zipWithIndex.toMap
    val versions = new ReplayedVersions(
      positions(replay.outputKind.exprId),
      rows.side.map(side => positions(side.exprId)))

    def over(version: Byte): LogicalPlan = {
      val leaves = map.children.indices.map { side =>
        ReplayedVersion(
          versions,
          version,
          if (rows.side.isEmpty) None else Some(side),
          map.children(side).output.map(column => positions(rows.columns(side)(column).exprId)),
          map.children(side).output,
          grouped.groups(side),
          grouped.orders(side),
          replay.operatorId)
      }
      node.plan.transformUp { case plan if plan.fastEquals(map) => plan.withNewChildren(leaves) }
    }

    val computed = ChangelogVersions(
      versions,
      RowKind.newAttribute(),
      if (waits) sorted(replay) else replay,
      over(RowKind.Insert),
      over(RowKind.Delete))
    if (waits) Project(node.plan.output, computed)
    else {
      // Most results of a group do not change, and need no shuffle.
      val differences = ChangelogConsolidate.byRow(node.plan.output, computed, inPlace = true)
      ChangelogConsolidate.byRow(node.plan.output, differences)
    }
  }

  /** Sorts closed groups, which come in no order, into the usual order of a replay. */
  private def sorted(replay: ChangelogReplay): Sort = {
    val groups = replay.partition.map(SortOrder(_, Ascending))
    val columns = ChangelogConsolidate.comparable(replay.columns)
    Sort(groups ++ replay.order ++ columns.map(SortOrder(_, Ascending)), global = false, replay)
  }

  /**
   * The rows to store.
   *
   * @param partition
   *   the columns that rows are stored by
   * @param side
   *   the column with the number of a row's side, for two inputs
   * @param columns
   *   for each input, the stored column of each input column
   */
  private case class StoredRows(
      partition: Seq[Attribute],
      side: Option[Attribute],
      columns: Seq[AttributeMap[Attribute]],
      plan: LogicalPlan)

  private def ofOne(map: LogicalPlan, grouped: GroupedMap, input: LogicalPlan): StoredRows = {
    val columns = columnsOf(map.children.head)
    val partition = NodeRewrite.partitionColumns(grouped.groups.head.distinct, input)
    val made = partition.collect { case alias: Alias => alias }
    StoredRows(
      partition.map(_.toAttribute),
      None,
      Seq(AttributeMap(columns.map(column => column -> column))),
      Project(columns ++ made ++ RowKind.find(input.output), input))
  }

  private def ofTwo(
      map: LogicalPlan,
      grouped: GroupedMap,
      inputs: Seq[LogicalPlan]): StoredRows = {
    val groups = grouped.groups.zip(inputs).map { case (group, input) =>
      NodeRewrite.partitionColumns(group, input)
    }
    // The partition columns are not stored twice.
    val others = map.children.zip(groups).map { case (input, group) =>
      columnsOf(input).filterNot(column => group.exists(_.semanticEquals(column)))
    }
    val kinds = inputs.map(input => RowKind.find(input.output))
    // A watermark on one side says nothing about the groups of the opposite side.
    val isTimed = groups.transpose.map(_.forall(EventTime.columnOf(_).isDefined))
    val union = Union(inputs.indices.map { side =>
      val partition = groups(side).zip(isTimed).map { case (column, isTimed) =>
        val metadata = if (isTimed) None else Some(Metadata.empty)
        Alias(valueOf(column), column.name)(explicitMetadata = metadata)
      }
      val number = Alias(Literal(side, IntegerType), "side")()
      val own = others.zipWithIndex.flatMap { case (columns, index) =>
        columns.map { column =>
          val value = if (index == side) column else Literal(null, column.dataType)
          Alias(value, column.name)()
        }
      }
      val kind = kinds(side).getOrElse(Literal(RowKind.Insert))
      Project((partition :+ number) ++ own :+ Alias(kind, RowKind.ColumnName)(), inputs(side))
    })
    val (partition, side +: rest) = union.output.init.splitAt(groups.head.size)
    val (left, right) = rest.splitAt(others.head.size)
    StoredRows(
      partition,
      Some(side),
      Seq(left, right).zip(others).zip(groups).map { case ((kept, others), group) =>
        AttributeMap(group.map(_.toAttribute).zip(partition) ++ others.zip(kept))
      },
      union)
  }

  private def valueOf(column: NamedExpression): Expression = column match {
    case Alias(value, _) => value
    case column => column
  }

  /** Returns the columns of an input. Spark repeats the grouping columns. */
  private def columnsOf(input: LogicalPlan): Seq[Attribute] = input.output.distinctBy(_.exprId)
}
