// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.times

import org.apache.spark.sql.catalyst.expressions.{Rank => _, _}
import org.apache.spark.sql.catalyst.plans.logical.{EventTime => _, _}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.inference.RunningWindow
import org.apache.spark.sql.changelog.inference.keys.ProjectKeys
import org.apache.spark.sql.changelog.inference.nodes.{
  FilterInference, InferredNode, StatelessInference, StaticInference, StaticSide,
  TemporalJoinInference
}
import org.apache.spark.sql.changelog.plans._

/**
 * Finds the event times after which the rows of a node are final, see [[ClosingTime]].
 *
 * {{{
 *   source               its event time
 *   group, partition     event times shared by all rows of the group
 *   inner join           the later of both sides' times
 *   left outer join      the left row's time, and the end of its possible matches
 *   union                the latest of all inputs' times
 * }}}
 *
 * An operator drops late rows by an event time of its own. If input rows can still change then,
 * the result might become silently wrong. The node then has no closing time. Operators above a
 * join with waiting rows have a delayed watermark, and emit held rows later: see
 * [[WatermarkDelay]].
 */
private[inference] object ClosingTimes {

  /**
   * Returns some closing times of the rows of a node, simple ones first. Empty if rows are never
   * final.
   */
  def apply(node: InferredNode): Seq[ClosingTime] = some(derive(node))

  private def some(times: Seq[ClosingTime]): Seq[ClosingTime] =
    times.distinct.sortBy(_.latestOf.size).take(Most)

  private def derive(node: InferredNode): Seq[ClosingTime] = node.plan match {
    case _ if node.rule eq StaticInference => Seq(ClosingTime(Nil))
    case _: FromChangelog | _: LeafNode => eventTimes(node.plan.output)
    case watermark: EventTimeWatermark =>
      if (node.child.kinds.isInsertOnly) {
        eventTimes(watermark.output.filter(_.exprId == watermark.eventTime.exprId))
      } else Nil
    case project: Project =>
      carry(
        apply(node.child),
        ProjectKeys.carriedColumns(project),
        project.projectList.flatMap(derived) ++ ends(project))
    case expand: Expand =>
      carry(apply(node.child), ProjectKeys.carriedColumns(expand), windows(expand))
    case agg: Aggregate => held(ofGroups(agg, node.child), node)
    case rank: Rank => held(ofRank(rank, node), node)
    case RunningWindow(time) if node.kinds.isInsertOnly =>
      if (isFinal(node.child, time)) held(Seq(ClosingTime(time)), node) else Nil
    case window: Window => held(ofPartition(node.child, window.partitionSpec), node)
    case limit: WindowGroupLimit => ofPartition(node.child, limit.partitionSpec)
    case union: Union => ofUnion(union, node.children)
    case join: Join => ofJoin(join, node.children)
    case join: TemporalJoin => held(ofTemporalJoin(join, node.children), node)
    case _: LookupJoin => apply(node.child)
    case Generate(copies: ReplicateRows, _, _, _, output, _) =>
      val same = copies.children.tail.zip(output).collect { case (column: Attribute, copy) =>
        column -> copy
      }
      carry(apply(node.child), same, Nil)
    case plan if FilterInference.appliesTo(plan) || StatelessInference.appliesTo(plan) =>
      carry(apply(node.child), ProjectKeys.carriedColumns(plan), Nil)
    case _ => Nil
  }

  private def eventTimes(columns: Seq[Attribute]): Seq[ClosingTime] =
    columns.filter(EventTime.columnOf(_).isDefined).map(ClosingTime(_))

  /**
   * Translates closing times to the column names above a node.
   *
   * @param same
   *   pairs of an input column and an output column with equal values
   * @param later
   *   pairs of input columns and an output column that is never earlier
   */
  private def carry(
      times: Seq[ClosingTime],
      same: Seq[(Attribute, Attribute)],
      later: Seq[(Seq[Attribute], Attribute)]): Seq[ClosingTime] = {
    def named(one: ClosingTime.DelayedTime): Seq[ClosingTime.DelayedTime] = {
      val choices = one.columns.toSeq.map { column =>
        same.collect { case (from, to) if from.exprId == column.exprId => to }
      }
      ProjectKeys
        .combinations(choices)
        .map(columns => one.copy(columns = AttributeSet(columns))) ++
        later.collect {
          case (from, to) if AttributeSet(from) == one.columns =>
            one.copy(columns = AttributeSet(to))
        }
    }
    times.flatMap(time => ProjectKeys.combinations(time.latestOf.map(named)).map(ClosingTime(_)))
  }

  /**
   * Returns the columns behind a computed time `result`. The result equals their time, or is
   * never earlier.
   */
  private def derived(result: NamedExpression): Option[(Seq[Attribute], Attribute)] =
    result match {
      case alias: Alias if !alias.child.isInstanceOf[Attribute] =>
        timeOf(alias.child)
          .orElse(EventTime.columnOf(alias).map(_ => alias.references.toSeq))
          .map(_ -> alias.toAttribute)
      case _ => None
    }

  /**
   * Returns the columns behind the time `expression`: the first non-null column, or a window's
   * end.
   */
  private def timeOf(expression: Expression): Option[Seq[Attribute]] = expression match {
    case column: Attribute => Some(Seq(column))
    case Coalesce(several) =>
      val times = several.map(timeOf)
      if (times.forall(_.isDefined)) Some(times.flatten.flatten) else None
    case field: GetStructField if field.extractFieldName == "end" => timeOf(field.child)
    case _ => None
  }

  /** Sliding windows: `Expand` copies a row for each window. */
  private def windows(expand: Expand): Seq[(Seq[Attribute], Attribute)] =
    expand.output.zip(expand.projections.transpose).flatMap { case (column, versions) =>
      val read = versions.map(_.references).distinct
      if (EventTime.columnOf(column).isDefined && read.size == 1) Some(read.head.toSeq -> column)
      else None
    }

  /**
   * Returns the times of an operator's rows, delayed by the operator's watermark if the operator
   * holds rows.
   */
  private def held(times: Seq[ClosingTime], node: InferredNode): Seq[ClosingTime] =
    if (node.kinds.isInsertOnly) times.map(_.after(WatermarkDelay(node))) else times

  private def ofGroups(agg: Aggregate, input: InferredNode): Seq[ClosingTime] = {
    val groups = agg.groupingExpressions.collect { case column: Attribute => column }
    val same = agg.aggregateExpressions.flatMap { result =>
      ProjectKeys.carriedColumn(result).map(_ -> result.toAttribute)
    }
    carry(
      inTime(input, groups, AttributeSet(groups)),
      same,
      agg.aggregateExpressions.flatMap(derived))
  }

  private def ofPartition(input: InferredNode, partition: Seq[Expression]): Seq[ClosingTime] = {
    val columns = partition.collect { case column: Attribute => column }
    inTime(input, columns, AttributeSet(columns ++ endsOf(input.plan, columns)))
  }

  /** Returns the columns with the end of a window among `columns`. */
  private def endsOf(plan: LogicalPlan, columns: Seq[Attribute]): Seq[Attribute] = plan match {
    case project: Project =>
      windowsByEnd(project).collect {
        case (window, end) if columns.exists(_.exprId == window.exprId) => end
      } ++ project.projectList.collect {
        case alias @ Alias(field: GetStructField, _)
            if timeOf(field).exists(_.forall(AttributeSet(columns).contains)) =>
          alias.toAttribute
      }
    case _: Filter | _: Window | _: Rank => endsOf(plan.children.head, columns)
    case _ => Nil
  }

  /**
   * Returns the ends of windows created in the same projection. Spark has simplified `w.end` to a
   * separate expression there.
   */
  private def ends(project: Project): Seq[(Seq[Attribute], Attribute)] =
    for {
      (window, end) <- windowsByEnd(project)
      (times, _) <- derived(window).toSeq
    } yield times -> end

  private def windowsByEnd(project: Project): Seq[(NamedExpression, Attribute)] =
    for {
      alias @ Alias(window: CreateNamedStruct, _) <- project.projectList
      if window.names.contains("end")
      end = window.valExprs(window.names.indexOf("end"))
      other @ Alias(value, _) <- project.projectList
      if value.semanticEquals(end)
    } yield alias -> other.toAttribute

  /**
   * Returns the times of `shared` columns, unless an operator might drop late rows by `key` that
   * can still change.
   */
  private def inTime(
      input: InferredNode,
      key: Seq[Attribute],
      shared: AttributeSet): Seq[ClosingTime] = {
    val times = apply(input)
    val isInTime = EventTime.firstOf(key).forall(isFinal(times, _, WatermarkDelay(input)))
    if (isInTime) times.filter(_.isMadeOf(shared)) else Nil
  }

  /** Whether rows are final once the watermark of an operator above has passed a column. */
  private def isFinal(input: InferredNode, column: Attribute): Boolean =
    isFinal(apply(input), column, WatermarkDelay(input))

  private def isFinal(times: Seq[ClosingTime], column: Attribute, delay: Long): Boolean =
    times.exists(_.isNotAfter(column, delay))

  /** The first row by event time is emitted after the watermark passes the row. */
  private def ofRank(rank: Rank, node: InferredNode): Seq[ClosingTime] = {
    val first = rank.orderBy.map(_.child) match {
      case Seq(time: Attribute) if node.kinds.isInsertOnly && isFinal(node.child, time) =>
        Seq(ClosingTime(time))
      case _ => Nil
    }
    first ++ ofPartition(node.child, rank.partitionBy)
  }

  private def ofUnion(union: Union, inputs: Seq[InferredNode]): Seq[ClosingTime] = {
    val times = inputs.map { input =>
      carry(apply(input), input.plan.output.zip(union.output), Nil)
    }
    times.reduce { (found, more) => some(for (one <- found; other <- more) yield one.and(other)) }
  }

  private def ofJoin(join: Join, sides: Seq[InferredNode]): Seq[ClosingTime] = {
    if (StaticSide.looksUp(join)) apply(StaticSide.other(sides(0), sides(1)))
    else {
      val times = sides.map(apply)
      val delay = sides.map(WatermarkDelay(_)).max
      val late = JoinWatermark(join).lateBy
      val isInTime = times.zip(late).forall {
        case (_, None) => true
        case (times, Some(column: Attribute)) => isFinal(times, column, delay)
        case _ => false
      }
      if (isInTime) JoinClosingTimes(join, times(0), times(1)) else Nil
    }
  }

  /** A version affects left rows of its own time and later. */
  private def ofTemporalJoin(join: TemporalJoin, sides: Seq[InferredNode]): Seq[ClosingTime] =
    TemporalJoinInference.eventTimes(join) match {
      case Some((left, right)) if isFinal(sides(0), left) && isFinal(sides(1), right) =>
        Seq(ClosingTime(left))
      case _ => Nil
    }

  private val Most = 16
}

/**
 * ClosingTime: an event time after which a row is final. Once the watermark has passed it, the
 * row neither appears nor disappears, except by late rows.
 *
 * The closing time is the latest non-null time of `latestOf`, so any later time is a closing time
 * too. With an empty `latestOf`, a row is final from the first batch on.
 */
private[inference] final case class ClosingTime(latestOf: Seq[ClosingTime.DelayedTime]) {

  /** Returns the later of two times. */
  def and(other: ClosingTime): ClosingTime =
    ClosingTime((latestOf ++ other.latestOf).foldLeft(Seq.empty[ClosingTime.DelayedTime]) {
      (merged, time) =>
        merged.indexWhere(_.columns == time.columns) match {
          case -1 => merged :+ time
          case same => merged.updated(same, time.after(merged(same).delay))
        }
    })

  def isMadeOf(columns: AttributeSet): Boolean = latestOf.forall(_.columns.subsetOf(columns))

  /** Returns the time with a delay of at least `delay` ms. */
  def after(delay: Long): ClosingTime = ClosingTime(latestOf.map(_.after(delay)))

  /**
   * Whether the time has passed once a watermark with a delay of `delay` ms has passed `column`.
   */
  def isNotAfter(column: Attribute, delay: Long): Boolean =
    latestOf.forall(time => time.delay <= delay && time.columns.contains(column))
}

private[inference] object ClosingTime {

  def apply(column: Attribute): ClosingTime = ClosingTime(
    Seq(DelayedTime(AttributeSet(column), 0L)))

  /**
   * A delayed event time.
   *
   * @param columns
   *   event times, or event-time windows; all non-null ones are equal
   * @param delay
   *   the delay after the event time, in ms
   */
  final case class DelayedTime(columns: AttributeSet, delay: Long) {

    /** Returns the time with at least the delay `other`, in ms. */
    def after(other: Long): DelayedTime = copy(delay = math.max(delay, other))

    /** Returns the event time, over rows of the columns `output`. */
    def time(output: Seq[Attribute]): Expression = {
      val times = output.filter(columns.contains).map { column =>
        column.dataType match {
          case window: StructType => GetStructField(column, window.fieldIndex("end"))
          case _ => column
        }
      }
      if (times.size == 1) times.head else Coalesce(times)
    }
  }
}

/**
 * WatermarkDelay: the delay of an operator's watermark behind the watermark of the sources, in
 * ms. Joins emit rows with event times before the watermark.
 */
private[inference] object WatermarkDelay {

  def apply(node: InferredNode): Long = {
    def below = node.children.map(apply).maxOption.getOrElse(0L)
    node.plan match {
      case _: FromChangelog => 0L
      case join: Join if !node.children.exists(_.isStatic) => below + JoinWatermark(join).delay
      case _ => below
    }
  }
}
