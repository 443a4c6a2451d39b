// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.lineage

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.analysis.ResolvePassingTime
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.plans.{FromChangelog, LookupTable, ReadName, RowTtl, Skew}

/**
 * Finds the source rows behind a query's result, node by node from the result down.
 *
 * {{{
 *   a group                       all rows of the group
 *   a row of a join               the joined rows of both sides
 *   a row of a window, a rank     all rows of the partition
 *   a row of DISTINCT             all equal rows
 *   a row within a limit          the row itself
 *   a row of from_changelog       the changes of its key, or of the row if there is no key
 * }}}
 *
 * Nothing is stored. The trace recomputes the plan, and is exact if the plan is deterministic. If
 * the rows of a node are not distinguishable, a note says so, and the trace stops there.
 */
private[changelog] class TraceRows(session: SparkSession) {
  import TraceRows._

  /** Traces all rows of an analyzed query without streams. */
  def apply(query: LogicalPlan): Seq[TracedNode] = {
    // A single current time for every computation.
    val plan = ResolvePassingTime.at(query, System.currentTimeMillis())
    plan
      .collectWithSubqueries { case leaf: LeafNode if leaf.isStreaming => leaf }
      .headOption
      .foreach(stream =>
        throw analysis("CHANGELOG_WHY_READS_STREAM", "node" -> DescribeNode.short(stream)))
    val rows = new LineageRows(session)
    try {
      val result = rows.keep(plan)
      shown(rows, "Result", result, level = 0, None) +:
        new Tracing(rows).trace(plan, result, level = 1, ReadName.Unknown)
    } finally rows.close()
  }
}

private object TraceRows {

  /** The number of displayed rows per node. */
  private val Most = 100

  private def shown(
      rows: LineageRows,
      name: String,
      wanted: LogicalPlan,
      level: Int,
      note: Option[String]): TracedNode = {
    val (count, some) = rows.show(wanted, Most)
    val more = Option.when(count > some.size)(s"${some.size} of $count rows are shown")
    val notes = note.toSeq ++ more
    TracedNode(level, name, count, some, Option.when(notes.nonEmpty)(notes.mkString("; ")))
  }

  /** The input rows behind a node's output rows, per input, with a remark. */
  private case class TracedInputs(inputs: Seq[LogicalPlan], note: Option[String] = None)

  private class Tracing(rows: LineageRows) {

    /**
     * @param wanted
     *   rows of the node, in the node's columns
     * @param name
     *   the name under which the node is read
     */
    def trace(
        node: LogicalPlan,
        wanted: LogicalPlan,
        level: Int,
        name: ReadName): Seq[TracedNode] = node match {
      case _: SubqueryAlias | _: View | _: ResolvedHint | _: RowTtl | _: Skew | _: LookupTable |
          _: EventTimeWatermark | _: Sort | _: RepartitionOperation | _: CollectMetrics =>
        trace(node.children.head, wanted, level, name.below(node))
      case Project(columns, child) if columns.forall(_.isInstanceOf[Attribute]) =>
        trace(child, rows.behind(child, wanted, same(columns.map(_.toAttribute))), level, name)
      case source: FromChangelog =>
        val called = name.name.orElse(ReadName.within(source))
        val told = if (source.key.isEmpty) source.output else source.key
        val changes = rows.behind(source.child, wanted, same(told))
        val which = if (source.key.isEmpty) None else Some("all changes of its key")
        Seq(
          shown(rows, named(source, called), wanted, level, None),
          shown(rows, "Changes", changes, level + 1, which))
      case leaf: LeafNode => Seq(shown(rows, named(leaf, name.name), wanted, level, None))
      case _ =>
        behind(node, wanted) match {
          case Some(TracedInputs(inputs, note)) =>
            val isCompared = inputs.exists(_ ne wanted)
            val notes = note.toSeq ++ subqueryNote(node) ++
              (if (isCompared) comparisonNote(node, wanted) else None) ++
              inputs.headOption.flatMap(noInputNote(rows, node, wanted, _))
            shown(rows, described(node), wanted, level, notes.reduceOption(_ + "; " + _)) +:
              node.children.zip(inputs).flatMap { case (child, input) =>
                trace(child, input, level + 1, ReadName.Unknown)
              }
          case None =>
            val note = "not traced further: every input row may contribute"
            Seq(shown(rows, described(node), wanted, level, Some(note)))
        }
    }

    /** Returns None if a node's rows do not identify their input rows. */
    private def behind(node: LogicalPlan, wanted: LogicalPlan): Option[TracedInputs] =
      if (node.expressions.exists(!_.deterministic)) None
      else
        node match {
          case Project(columns, child) =>
            Some(of(rows.behind(child, wanted, valuesOf(columns))))
          case _: Filter => Some(of(wanted))
          case aggregate: Aggregate => Some(ofGroups(aggregate, wanted))
          case Distinct(child) => Some(of(rows.behind(child, wanted, same(child.output))))
          case unique: Deduplicate =>
            val sameKeys = rows.behind(unique.child, wanted, same(unique.keys))
            Some(of(sameKeys, "one of the rows with its key"))
          case join: Join => ofJoin(join, wanted)
          case union: Union =>
            Some(TracedInputs(union.children.map(child =>
              rows.behind(child, wanted, byPlace(child, wanted)))))
          case operation: SetOperation => Some(ofSets(operation, wanted))
          case window: Window =>
            val keys = window.partitionSpec.map(key => Alias(key, "partition")())
            val partitions = rows.keep(Project(keys, wanted))
            val equal = window.partitionSpec.zip(keys.map(_.toAttribute))
            Some(of(rows.behind(window.child, partitions, equal), "all rows of its partition"))
          case _: GlobalLimit | _: LocalLimit | _: Offset | _: Tail =>
            val note = "all input rows decide which rows are within the limit"
            Some(of(wanted, note))
          case generate: Generate if generate.unrequiredChildIndex.isEmpty =>
            Some(of(rows.behind(generate.child, wanted, same(generate.child.output))))
          case expand: Expand => Some(of(ofExpand(expand, wanted)))
          case _ => None
        }

    private def of(input: LogicalPlan, note: String = ""): TracedInputs =
      TracedInputs(Seq(input), Some(note).filter(_.nonEmpty))

    private def byPlace(child: LogicalPlan, wanted: LogicalPlan): Seq[(Expression, Attribute)] =
      child.output.zip(wanted.output)

    private def ofGroups(aggregate: Aggregate, wanted: LogicalPlan): TracedInputs = {
      val keys = aggregate.groupingExpressions.map(key => Alias(key, "group")())
      val results = aggregate.aggregateExpressions
      val all = aggregate.copy(aggregateExpressions = results ++ keys)
      val compared = results.zip(wanted.output).map { case (result, column) =>
        (isGrouping(aggregate, result), result.toAttribute -> column)
      }
      // An aggregate may omit its groups from the result.
      val namesGroup = compared.count(_._1) >= aggregate.groupingExpressions.size
      val groups =
        rows.behind(all, wanted, compared.filter(_._1 || !namesGroup).map(_._2))
      val equal = aggregate.groupingExpressions.zip(keys.map(_.toAttribute))
      of(rows.behind(aggregate.child, groups, equal), "all rows of its group")
    }

    private def isGrouping(aggregate: Aggregate, result: NamedExpression): Boolean = {
      val value = result match {
        case Alias(value, _) => value
        case column => column
      }
      aggregate.groupingExpressions.exists(_.semanticEquals(value))
    }

    /**
     * A padding row has NULLs in place of a match, and NULLs are no row of that side. Only rows
     * that satisfy the condition are therefore matches.
     */
    private def ofJoin(join: Join, wanted: LogicalPlan): Option[TracedInputs] = {
      val (left, right) = (join.left, join.right)
      def side(plan: LogicalPlan, condition: Option[Expression] = None) =
        rows.behind(plan, wanted, same(plan.output), condition)
      val meets = join.condition.orElse(Some(Literal.TrueLiteral))
      def includingUnmatched(other: LogicalPlan) = meets.map { condition =>
        other.output
          .map(IsNull(_): Expression)
          .reduceOption(And(_, _))
          .fold(condition)(Or(condition, _))
      }
      join.joinType match {
        case _: InnerLike => Some(TracedInputs(Seq(side(left), side(right))))
        case LeftOuter => Some(TracedInputs(Seq(side(left), side(right, meets))))
        case RightOuter => Some(TracedInputs(Seq(side(left, meets), side(right))))
        case FullOuter =>
          Some(
            TracedInputs(
              Seq(side(left, includingUnmatched(right)), side(right, includingUnmatched(left)))))
        case LeftSemi =>
          Some(TracedInputs(Seq(wanted, rows.behind(right, wanted, Nil, meets))))
        case LeftAnti =>
          val none = rows.keep(Filter(Literal.FalseLiteral, right))
          Some(
            TracedInputs(Seq(wanted, none), Some("no row of the right side meets the condition")))
        case _ => None
      }
    }

    private def ofSets(operation: SetOperation, wanted: LogicalPlan): TracedInputs = {
      val sides = operation.children.map(side => rows.behind(side, wanted, byPlace(side, wanted)))
      operation match {
        case except: Except if except.isAll =>
          TracedInputs(sides, Some("each row of the right side removes one row of the left side"))
        case _: Except => TracedInputs(sides, Some("the right side has no equal row"))
        case _ => TracedInputs(sides)
      }
    }

    private def ofExpand(expand: Expand, wanted: LogicalPlan): LogicalPlan = {
      val copies = expand.child.output.map(_.newInstance())
      val all = expand.copy(
        projections = expand.projections.map(_ ++ expand.child.output),
        output = expand.output ++ copies)
      val copied = rows.behind(all, wanted, same(expand.output))
      rows.behind(expand.child, copied, expand.child.output.zip(copies))
    }

    private def same(columns: Seq[Attribute]): Seq[(Expression, Attribute)] =
      columns.zip(columns)

    private def valuesOf(columns: Seq[NamedExpression]): Seq[(Expression, Attribute)] =
      columns.map {
        case alias: Alias => alias.child -> alias.toAttribute
        case column => column -> column.toAttribute
      }
  }

  private def subqueryNote(node: LogicalPlan): Option[String] =
    Option.when(node.expressions.exists(SubqueryExpression.hasSubquery))(
      "the rows read by the subquery are not traced")

  private def comparisonNote(node: LogicalPlan, wanted: LogicalPlan): Option[String] = {
    val others = wanted.output.filterNot(LineageRows.areComparable(_, node))
    Option.when(others.nonEmpty)(
      s"rows are compared without ${others.map(_.name).mkString(", ")}, which have no equality")
  }

  /**
   * Returns a note if no input row was found although one must exist, as with ranks among ties.
   */
  private def noInputNote(
      rows: LineageRows,
      node: LogicalPlan,
      wanted: LogicalPlan,
      input: LogicalPlan): Option[String] = {
    val mayBeEmpty = node match {
      case aggregate: Aggregate => aggregate.groupingExpressions.isEmpty
      case other => other.children.size > 1
    }
    Option.when(!mayBeEmpty && rows.isEmpty(input) && !rows.isEmpty(wanted))(
      "no input row was found: a recompute returned other rows")
  }

  private def described(node: LogicalPlan): String =
    s"${DescribeNode.node(node)} ${DescribeNode.detail(node)}".trim

  private def named(node: LogicalPlan, name: Option[String]): String =
    name.fold(described(node))(name => s"$name ${DescribeNode.detail(node)}")
}

/**
 * The rows of a node behind some rows of a query's result.
 *
 * @param level
 *   the distance from the result
 * @param count
 *   the number of rows
 * @param rows
 *   some of the rows: the text of each column by name, or None for NULL
 * @param note
 *   a remark on the trace
 */
private[changelog] final case class TracedNode(
    level: Int,
    node: String,
    count: Long,
    rows: Seq[Seq[(String, Option[String])]],
    note: Option[String]) {

  /** Returns one table row for each row, or one without a row. */
  def toRows: Seq[Row] = {
    val texts = rows.map(_.map { case (name, text) => name -> text.orNull }.toMap)
    val shown = if (texts.isEmpty) Seq(null) else texts
    shown.map(Row(level, node, count, _, note.orNull))
  }
}

private[changelog] object TracedNode {

  /** The columns of [[TracedNode.toRows]]. */
  val output: Seq[Attribute] = toAttributes(StructType.fromDDL(
    "level INT NOT NULL, node STRING NOT NULL, rows BIGINT NOT NULL, row MAP<STRING, STRING>, note STRING"))
}
