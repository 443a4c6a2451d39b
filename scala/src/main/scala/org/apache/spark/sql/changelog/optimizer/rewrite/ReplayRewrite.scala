// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression,
  AggregateFunction
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.BooleanType

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.inference.{AggregateForm, AnnotatedPlan}
import org.apache.spark.sql.changelog.plans.{ChangelogConsolidate, ChangelogReplay}

/**
 * Computes an aggregate anew for each group that changes, where a function can't take values back
 * or sessions may merge.
 * {{{
 *   Aggregate [city], [city, median(fare)]   =>   ChangelogConsolidate [city]
 *   +- rides  [I,UB,UA,D]                         +- Aggregate [city, _row_kind], [city, median(fare)]
 *                                                    +- ChangelogReplay [city]
 *                                                       +- Project [city, fare, _row_kind]
 *                                                          +- rides  [I,UB,UA,D]
 * }}}
 * The aggregate stays Spark's own, with every function Spark has. Over the old rows it gives the
 * group's old result, over the new rows the new one, and the difference is what is emitted.
 * Sessions are found among all rows of the other groups, so these are what rows are kept by.
 *
 * Where groups are emitted once, when the watermark has closed them, only their last version is
 * replayed, and there is nothing to net.
 *
 * Without groups there is one row over no rows too. So each version opens with a row that is in
 * no function's rows. A function of Python knows no filter; there is no row over no rows then, as
 * in batch.
 */
private[optimizer] object ReplayRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan match {
    case aggregate: Aggregate =>
      val retracts = !node.children.head.mode.isInsertOnly
      AggregateForm.needsRows(aggregate, AggregateForm.calls(aggregate), retracts)
    case _ => false
  }

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val aggregate = node.plan.asInstanceOf[Aggregate]
    val groups = this.groups(aggregate)
    val (sessions, others) = groups.partition(group => AggregateForm.isSession(group.original))
    val rows = readColumns(aggregate, groups, inputs.head)
    val waits = AggregateForm.waitsForWatermark(node)
    val hasOpening = groups.isEmpty && !AggregateForm.callsPython(aggregate)
    val replay = ChangelogReplay(
      others.map(_.column),
      // sessions are looked for in the order in which they begin
      sessions.map(session => SortOrder(session.column, Ascending)),
      sessions.headOption.map(_.column),
      dropsLate = !aggregates(node.children.head),
      waits,
      RowKind.find(rows.output),
      if (hasOpening) Some(AttributeReference("_opening", BooleanType, nullable = false)())
      else None,
      RowKind.newAttribute(),
      ids.next(),
      rows)
    val computed =
      compute(aggregate, others, sessions, replay, if (waits) sorted(replay) else replay)
    if (waits) select(aggregate, groups, computed, kind = None)
    else NodeRewrite.sending(node.mode.updateKind, netted(aggregate, groups, replay, computed))
  }

  private def netted(
      aggregate: Aggregate,
      groups: Seq[Group],
      replay: ChangelogReplay,
      computed: LogicalPlan): LogicalPlan = {
    val netted = ChangelogConsolidate(
      groups.map(_.column),
      pairs = true,
      replaces = false,
      replay.outputKind,
      RowKind.newAttribute(),
      computed)
    select(aggregate, groups, netted, RowKind.find(netted.output))
  }

  private def aggregates(node: AnnotatedPlan): Boolean =
    node.plan.isInstanceOf[Aggregate] || node.children.exists(aggregates)

  /** What is given out in no order, in the order in which rows are replayed otherwise. */
  private def sorted(replay: ChangelogReplay): Sort = {
    val rest = replay.columns.filter(column => RowOrdering.isOrderable(column.dataType))
    val order = (replay.partition :+ replay.outputKind) ++ replay.order.map(_.child) ++ rest
    Sort(order.distinct.map(SortOrder(_, Ascending)), global = false, replay)
  }

  /**
   * @param original
   *   what is grouped by
   * @param named
   *   its value that is compared, as a column
   */
  private case class Group(original: Expression, named: NamedExpression) {
    def column: Attribute = named.toAttribute
  }

  private def groups(aggregate: Aggregate): Seq[Group] =
    aggregate.groupingExpressions
      .foldLeft(Seq.empty[Expression]) { (found, next) =>
        if (found.exists(_.semanticEquals(next))) found else found :+ next
      }
      .map { group =>
        SparkRules.normalizeFloats(group) match {
          case column: Attribute => Group(group, column)
          case alias: Alias => Group(group, alias)
          case value => Group(group, Alias(value, nameOf(group))())
        }
      }

  private def nameOf(group: Expression): String = group match {
    case named: NamedExpression => named.name
    case other => other.sql
  }

  /** The groups, then what the functions read, in the order in which they name it. */
  private def readColumns(
      aggregate: Aggregate,
      groups: Seq[Group],
      input: LogicalPlan): LogicalPlan = {
    val read =
      AggregateForm.calls(aggregate).flatMap(_.collect { case column: Attribute => column })
    val named = AttributeSet(groups.map(_.column))
    val columns = read.map(column => input.output.find(_.exprId == column.exprId).get)
    val others = columns.filterNot(named.contains).distinctBy(_.exprId)
    Project(groups.map(_.named) ++ others ++ RowKind.find(input.output), input)
  }

  /** The aggregate over both versions of each group's rows. */
  private def compute(
      aggregate: Aggregate,
      others: Seq[Group],
      sessions: Seq[Group],
      replay: ChangelogReplay,
      rows: LogicalPlan): Aggregate = {
    val groups = others ++ sessions
    val columns = AttributeMap(replay.columns.map(column => column -> column))
    val hasOrder = AggregateForm.calls(aggregate).exists(_.exists(_.isInstanceOf[SortOrder]))

    def overReplay(expression: Expression): Expression = expression match {
      case call: AggregateExpression =>
        replay.opening.fold(call)(withoutOpening(call, _, hasOrder)).transform {
          case column: Attribute => columns.getOrElse(column, column)
        }
      case other =>
        groups
          .find(_.original.semanticEquals(other))
          .map(_.column)
          .getOrElse(other.mapChildren(overReplay))
    }

    val results = aggregate.aggregateExpressions.collect { case alias: Alias =>
      overReplay(alias).asInstanceOf[Alias]
    }
    Aggregate(
      // in the order in which replayed rows come
      (others.map(_.column) :+ replay.outputKind) ++ sessions.map(_.column),
      (groups.map(_.column) ++ results) :+ replay.outputKind,
      rows)
  }

  /**
   * A call that does not see the row that opens a version.
   *
   * Where a DISTINCT call has a filter, Spark expands the rows, which it can't do if there is a
   * `WITHIN GROUP`. Then the DISTINCT calls see NULL in that row, which `listagg`, `count` and
   * `sum` leave out.
   */
  private def withoutOpening(
      call: AggregateExpression,
      opening: Attribute,
      hasOrder: Boolean): AggregateExpression = {
    def orNull(value: Expression): Expression = value match {
      case order: SortOrder => order.copy(child = orNull(order.child))
      case constant if constant.foldable => constant
      case other => If(opening, Literal(null, other.dataType), other)
    }
    if (call.isDistinct && call.filter.isEmpty && hasOrder) {
      val function = call.aggregateFunction.mapChildren(orNull).asInstanceOf[AggregateFunction]
      call.copy(aggregateFunction = function)
    } else {
      call.copy(filter = Some(call.filter.foldLeft[Expression](Not(opening))(And(_, _))))
    }
  }

  /** The columns of the aggregate, groups under the names they have there. */
  private def select(
      aggregate: Aggregate,
      groups: Seq[Group],
      computed: LogicalPlan,
      kind: Option[Attribute]): LogicalPlan = {
    val columns = aggregate.aggregateExpressions.map {
      case column: Attribute =>
        val group = groups.find(_.original.semanticEquals(column)).get.column
        if (group.exprId == column.exprId) column
        else Alias(group, column.name)(exprId = column.exprId, qualifier = column.qualifier)
      case alias => alias.toAttribute
    }
    Project(columns ++ kind, computed)
  }
}
