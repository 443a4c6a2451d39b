// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression, AggregateFunction
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.BooleanType

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.inference.{AggregateForm, AnnotatedPlan}
import org.apache.spark.sql.changelog.plans.{ChangelogConsolidate, ChangelogReplay}

/**
 * Recomputes an aggregate for each changed group, if a function cannot subtract values, or
 * sessions may merge.
 *
 * {{{
 *   Aggregate [city], [city, median(fare)]   =>   ChangelogConsolidate [city]
 *   +- rides  [I,UB,UA,D]                         +- Aggregate [city, _row_kind], [city, median(fare)]
 *                                                    +- ChangelogReplay [city]
 *                                                       +- Project [city, fare, _row_kind]
 *                                                          +- rides  [I,UB,UA,D]
 * }}}
 *
 * The aggregate remains Spark's own and supports every function of Spark. The aggregate computes
 * the old result over the old rows and the new result over the new rows. Netting leaves the
 * difference. Sessions are found among rows with equal values in the remaining groups, so rows
 * are stored by the remaining groups.
 *
 * If groups are emitted once, after the watermark closes them, only the last version is replayed,
 * without netting.
 *
 * A global aggregate has one row even over an empty input. Each version therefore opens with a
 * row hidden from all functions by a filter. Python functions do not support filters, so there is
 * no result over an empty input, as in batch Spark.
 */
private[optimizer] object ReplayRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan match {
    case aggregate: Aggregate =>
      val retracts = !node.children.head.mode.isInsertOnly
      AggregateForm.needsRows(aggregate, AggregateForm.calls(aggregate), retracts)
    case _ => false
  }

  override def apply(context: RewriteContext): LogicalPlan = {
    import context.{ids, input, node}
    val aggregate = node.plan.asInstanceOf[Aggregate]
    val groups = this.groups(aggregate)
    val (sessions, others) = groups.partition(group => AggregateForm.isSession(group.original))
    val rows = readColumns(aggregate, groups, input)
    val waits = AggregateForm.waitsForWatermark(node)
    val hasOpening = groups.isEmpty && !AggregateForm.callsPython(aggregate)
    val replay = ChangelogReplay(
      others.map(_.column),
      // Sessions are found in the order of their starts.
      sessions.map(session => SortOrder(session.column, Ascending)),
      RowKind.find(rows.output),
      RowKind.newAttribute(),
      ids.next(),
      rows,
      sessions.headOption.map(_.column),
      Option.when(hasOpening)(AttributeReference("_opening", BooleanType, nullable = false)()),
      dropsLate = !aggregates(node.children.head),
      emitsClosed = waits)
    val computed =
      compute(aggregate, others, sessions, replay, if (waits) sorted(replay) else replay)
    if (waits) select(aggregate, groups, computed, kind = None)
    else {
      val netted = ChangelogConsolidate.byKey(groups.map(_.column), computed)
      NodeRewrite.sending(
        node.mode.updateKind,
        select(aggregate, groups, netted, Some(netted.outputKind)))
    }
  }

  private def aggregates(node: AnnotatedPlan): Boolean =
    node.plan.isInstanceOf[Aggregate] || node.children.exists(aggregates)

  /** Sorts closed groups, which come in no order, into the usual order of a replay. */
  private def sorted(replay: ChangelogReplay): Sort = {
    val rest = ChangelogConsolidate.comparable(replay.columns)
    val order = (replay.partition :+ replay.outputKind) ++ replay.order.map(_.child) ++ rest
    Sort(order.distinct.map(SortOrder(_, Ascending)), global = false, replay)
  }

  /**
   * @param original
   *   the grouping expression
   * @param named
   *   the compared value of the expression, as a column
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

  /**
   * Returns the groups, followed by the columns read by functions, in order of their first use.
   */
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

  /** Returns the aggregate over both versions of each group's rows. */
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
      // In the order of replayed rows.
      (others.map(_.column) :+ replay.outputKind) ++ sessions.map(_.column),
      (groups.map(_.column) ++ results) :+ replay.outputKind,
      rows)
  }

  /**
   * Returns a call that ignores the opening row of a version.
   *
   * For a DISTINCT call with a filter, Spark expands the rows, which is impossible beside a
   * `WITHIN GROUP`. In this case DISTINCT calls read NULL in the opening row, and `listagg`,
   * `count` and `sum` skip NULL.
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

  /** Returns the columns of the aggregate, with the aggregate's names for groups. */
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
