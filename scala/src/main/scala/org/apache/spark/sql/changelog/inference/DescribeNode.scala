// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions.{Rank => _, _}
import org.apache.spark.sql.catalyst.plans.ExistenceJoin
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.NumericType
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.compat.NearestBy
import org.apache.spark.sql.changelog.inference.nodes.StaticInference
import org.apache.spark.sql.changelog.plans.{
  CommitHistory, Emission, Emit, FromChangelog, InputMode, KeyedVersions, LookupJoin, Rank,
  ReadName, RecursiveQuery, RowTtl, Salt, TemporalFilter, TemporalJoin, ToChangelog
}

/**
 * Names nodes for readers, in EXPLAIN and errors alike, without expression ids.
 *
 * {{{
 *   ChangelogAggregate [cnt] [count(1) AS freq]
 *   ----- node ------- ------- detail ---------
 *   ------- short ----------
 * }}}
 */
object DescribeNode {

  /** Returns the node's name: for stateful nodes, the operator's name. */
  def node(plan: LogicalPlan): String = plan match {
    case source: FromChangelog if source.input == InputMode.Upsert => "ChangelogNormalize"
    case _: FromChangelog => "ChangelogSource"
    case _: UnionLoop => "WITH RECURSIVE"
    case _ if StaticInference.isStatic(plan) => plan.nodeName
    case _: Aggregate => "ChangelogAggregate"
    case _: Join => "ChangelogJoin"
    case _: TemporalJoin => "ChangelogTemporalJoin"
    case _: LookupJoin => "ChangelogLookupJoin"
    case _: TemporalFilter => "ChangelogTemporalFilter"
    case _: RowTtl => "ChangelogRowTtl"
    case _: CommitHistory => "ChangelogHistory"
    case _: Emit => "ChangelogEmit"
    case _: Rank => "ChangelogRank"
    case _: Window | _: WindowGroupLimit => "ChangelogWindow"
    case _: RecursiveQuery => "ChangelogRecursion"
    case NearestBy() => "JOIN ... NEAREST BY"
    case GroupedMap(_) => s"Changelog${plan.nodeName}"
    case _ => plan.nodeName
  }

  /** Returns the node's arguments. */
  def detail(plan: LogicalPlan): String = plan match {
    case project: Project => list(project.projectList)
    case filter: Filter => expression(filter.condition)
    case filter: TemporalFilter => expression(filter.condition)
    case hint: RowTtl => Utils.msDurationToString(hint.ttl)
    case emit: Emit => emissionDetail(emit)
    case history: CommitHistory => key(history.key)
    case versions: KeyedVersions => key(versions.key)
    case agg: Aggregate => aggregateDetail(agg)
    case join: Join => joinDetail(join)
    case join: TemporalJoin => temporalJoinDetail(join)
    case lookup: LookupJoin => joinDetail(lookup.toJoin)
    case rank: Rank => rankDetail(rank)
    case window: Window =>
      val over = Seq(list(window.partitionSpec), list(window.orderSpec)).mkString(" ")
      s"$over ${list(window.windowExpressions)}"
    case map @ GroupedMap(grouped) =>
      val function = map.expressions.collectFirst { case call: PythonUDF => call.name }
      (grouped.groups.map(list).distinct ++ function).mkString(" ")
    case source: FromChangelog => (source.reader.toSeq :+ list(source.output)).mkString(" ")
    case recursive: RecursiveQuery => list(recursive.output)
    case root: ToChangelog =>
      Seq(root.mode.toString, if (root.key.isEmpty) "" else key(root.key)).mkString(" ").trim
    case sort: Sort => list(sort.order)
    case generate: Generate => expression(generate.generator)
    case watermark: EventTimeWatermark => s"${watermark.eventTime.name} ${watermark.delay}"
    case repartition: RepartitionByExpression => list(repartition.partitionExpressions)
    case leaf: LeafNode => list(leaf.output)
    case _ => ""
  }

  /** Returns the node's name and its distinguishing arguments, short enough for a sentence. */
  def short(plan: LogicalPlan): String = {
    val mark = plan match {
      case agg: Aggregate => bracketed(groups(agg))
      case join: Join => joinType(join)
      case join: TemporalJoin => join.joinType.toString
      case lookup: LookupJoin => joinType(lookup.toJoin)
      case rank: Rank => s"${rank.function} ${list(rank.partitionBy)}"
      case window: Window => list(window.partitionSpec)
      case _: Project => ""
      case other => detail(other)
    }
    s"${node(plan)} $mark".trim
  }

  /** Returns the columns of a key: `(a, b)`. */
  def key(columns: Iterable[Attribute]): String = columns.map(_.name).mkString("(", ", ", ")")

  /** Returns an expression as a user writes it. */
  def expression(expression: Expression): String = named(expression, _.name)

  private def named(expression: Expression, name: Attribute => String): String =
    expression match {
      case window: Alias if window.metadata.contains(TimeWindow.marker) =>
        s"window(${window.references.map(name).mkString(", ")}) AS ${window.name}"
      case Salt(columns, _) => columns.map(name).mkString("salt(", ", ", ")")
      case _ =>
        expression.transformUp {
          case column: Attribute => PrettyAttribute(name(column), column.dataType)
          // Without the type suffix of the literal.
          case number @ Literal(value, _: NumericType) if value != null =>
            PrettyAttribute(value.toString, number.dataType)
          case noteOfTheOptimizer: TaggingExpression => noteOfTheOptimizer.child
        }.sql
    }

  /** Returns the grouping expressions, as SQL. */
  def groups(agg: Aggregate): Seq[String] =
    agg.groupingExpressions.map(named(_, groupName(agg, _)))

  /**
   * Returns the event times of a closing row: `at`, or `at + 5.0 m`. The watermark must pass the
   * latest one.
   */
  def closingTimes(closing: Emit): Seq[String] =
    closing.times.map(eventTime).zip(closing.delays).map {
      case (time, 0L) => time
      case (time, delay) => s"$time + ${Utils.msDurationToString(delay)}"
    }

  /** Describes an event time: a column, the end of a window, or the first non-null of several. */
  def eventTime(time: Expression): String = time match {
    case field: GetStructField => s"${eventTime(field.child)}.${field.extractFieldName}"
    case Coalesce(times) => times.map(eventTime).mkString("coalesce(", ", ", ")")
    case other => expression(other)
  }

  private def emissionDetail(emit: Emit): String = emit.emission match {
    case Emission.Every(interval) => s"every ${Utils.msDurationToString(interval)}"
    case Emission.OnClose(0) | Emission.Changes => s"on close ${bracketed(closingTimes(emit))}"
    case Emission.OnClose(corrections) =>
      s"on close ${bracketed(closingTimes(emit))}, corrections for " +
        Utils.msDurationToString(corrections)
  }

  private def list(expressions: Seq[Expression]): String = bracketed(expressions.map(expression))

  private def bracketed(texts: Seq[String]): String = texts.mkString("[", ", ", "]")

  private def aggregateDetail(agg: Aggregate): String = {
    val results = agg.aggregateExpressions.filterNot(isGroup(agg, _))
    s"${bracketed(groups(agg))} ${bracketed(results.map(named(_, groupName(agg, _))))}"
  }

  /** Returns a column's name, or the grouping expression behind a name generated by Spark. */
  private def groupName(agg: Aggregate, column: Attribute): String = agg.child match {
    case Project(columns, _) if column.name == "_groupingexpression" =>
      columns
        .collectFirst { case alias: Alias if alias.exprId == column.exprId => alias.child }
        .map(expression)
        .getOrElse(column.name)
    case _ => column.name
  }

  private def isGroup(agg: Aggregate, column: NamedExpression): Boolean = column match {
    case attribute: Attribute => agg.groupingExpressions.exists(_.semanticEquals(attribute))
    case _ => false
  }

  /** `LeftOuter (k = R.k)`: a name present on both sides gets its qualifier, if known. */
  private def joinDetail(join: Join): String =
    (joinType(join) +: join.condition.toSeq.map(namedInJoin(join, _))).mkString(" ")

  private def namedInJoin(join: LogicalPlan, expression: Expression): String = {
    val names = join.children.flatMap(_.output.map(_.name).distinct)
    val repeated = names.diff(names.distinct).toSet
    def name(column: Attribute): String =
      if (repeated(column.name)) {
        val qualifier = column.qualifier.takeRight(1).filterNot(ReadName.isMadeUp)
        (qualifier :+ column.name).mkString(".")
      } else column.name
    named(expression, name)
  }

  /** `Inner (cur = r.cur) last (since <= at)`. */
  private def temporalJoinDetail(join: TemporalJoin): String = {
    val keys: Seq[Expression] = join.leftKey.zip(join.rightKey).zip(join.matchesNull).map {
      case ((left, right), true) => EqualNullSafe(left, right)
      case ((left, right), false) => EqualTo(left, right)
    }
    val time = (join.isForward, join.allowsEqual) match {
      case (false, true) => LessThanOrEqual(join.rightTime, join.leftTime)
      case (false, false) => LessThan(join.rightTime, join.leftTime)
      case (true, true) => GreaterThanOrEqual(join.rightTime, join.leftTime)
      case (true, false) => GreaterThan(join.rightTime, join.leftTime)
    }
    val which = if (join.isForward) "first" else "last"
    val conditions = (keys ++ join.condition).reduceOption(And(_, _)).map(namedInJoin(join, _))
    (join.joinType.toString +: conditions.toSeq :+ which :+ namedInJoin(join, time)).mkString(" ")
  }

  private def joinType(join: Join): String = join.joinType match {
    case existence: ExistenceJoin =>
      s"Existence ${existence.exists.name}"
    case other => other.toString
  }

  private def rankDetail(rank: Rank): String = {
    val bounds =
      if (rank.end == Long.MaxValue) s"from ${rank.start}" else s"${rank.start} to ${rank.end}"
    val number = rank.rankNumber.map(column => s" AS ${column.name}").getOrElse("")
    s"${rank.function} ${list(rank.partitionBy)} ${list(rank.orderBy)} $bounds$number"
  }
}
