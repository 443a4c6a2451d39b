// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import java.util.Locale

import scala.util.matching.Regex

import org.apache.spark.sql.catalyst.analysis.ResolvedInlineTable
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.catalyst.util.DateTimeUtils.{convertSpecialDate, getZoneId}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.plans.{FromChangelog, PassingTime, ToChangelog}

/**
 * Keeps the current time from becoming a constant in a query with `to_changelog`.
 *
 * {{{
 *   Filter at < now()     =>   Filter at < PassingTime now()
 *   +- FromChangelog           +- FromChangelog
 * }}}
 *
 * Spark's optimizer would silently insert a new constant in each batch. The optimizer also
 * evaluates words such as `CAST('today' AS DATE)`, and Spark's parser has already evaluated `DATE
 * 'today'` ([[TimeWord]]). The plan below `from_changelog` stays unchanged, because it is
 * computed once per change. Runs when everything else is resolved.
 */
object ResolvePassingTime extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(isKept)) plan else StreamingQueries.rewrite(plan)(mark)

  /** Whether the result depends on the current time, ignoring the time within sources. */
  def readsTime(plan: LogicalPlan): Boolean = mark(plan).collectWithSubqueries {
    case node if node.expressions.exists(PassingTime.isIn) => node
  }.nonEmpty

  /** Returns the query as of `time`, in ms. */
  def at(plan: LogicalPlan, time: Long): LogicalPlan = {
    val clock = Literal(time * 1000, TimestampType)
    mark(plan).transformAllExpressionsWithSubqueries {
      case time: PassingTime if time.advances => time.at(clock)
    }
  }

  private def isKept(plan: LogicalPlan): Boolean = plan match {
    case root: ToChangelog => root.streaming
    case _ => false
  }

  private def mark(plan: LogicalPlan): LogicalPlan = plan match {
    case source: FromChangelog => source
    case _ =>
      inValues(plan).foreach(time =>
        throw analysis(
          "CHANGELOG_PASSING_TIME",
          "expression" -> time,
          "node" -> DescribeNode.short(plan)))
      plan.mapChildren(mark).transformExpressions {
        case time @ (_: CurrentTimestampLike | _: LocalTimestamp | _: CurrentDate |
            _: CurrentTime) =>
          PassingTime(time)
        case TimeWord(time) => time
        // Spark would turn the common expression into a column.
        case between: Between if isTimed(between.replacement) => inlined(between.replacement)
        case common: With if common.defs.exists(isTimed) => inlined(common)
        case subquery: SubqueryExpression => subquery.withNewPlan(mark(subquery.plan))
      }
  }

  /** Returns a current time in the rows of `VALUES`, which are constants. */
  private def inValues(plan: LogicalPlan): Option[String] = plan match {
    case values: ResolvedInlineTable => values.expressions.find(isTimed).map(_.sql)
    case _ => TimeWord.inValues(plan)
  }

  private def isTimed(expression: Expression): Boolean = expression.exists {
    case _: CurrentTimestampLike | _: LocalTimestamp | _: CurrentDate | _: CurrentTime |
        _: PassingTime =>
      true
    case TimeWord(_) => true
    case _ => false
  }

  private def inlined(expression: Expression): Expression = expression match {
    case With(child, definitions) =>
      val values = definitions.map(value => value.id -> value.child).toMap
      child.transform {
        case reference: CommonExpressionRef if values.contains(reference.id) =>
          values(reference.id)
      }
    case other => other
  }
}

/**
 * Finds words for a time near the current one, and returns their expression.
 *
 * {{{
 *   CAST('today' AS DATE), DATE 'today'   =>  current_date()
 *   TIMESTAMP 'now'                       =>  current_timestamp()
 *   TIMESTAMP_NTZ 'yesterday'             =>  CAST(date_sub(current_date(), 1) AS TIMESTAMP_NTZ)
 * }}}
 *
 * Spark's parser has turned `DATE 'today'` into a constant, the day of parsing. The constant
 * still has the position of its text.
 */
private[analysis] object TimeWord {

  /** Returns the meaning of an expression, if the expression is a word for a time. */
  def unapply(expression: Expression): Option[Expression] = expression match {
    case literal: Literal if isTime(literal.dataType) =>
      textOf(literal.origin)
        .flatMap(Typed.findPrefixMatchOf)
        .flatMap(found => meaning(word(found), literal.dataType, None))
    case cast: Cast
        if isTime(cast.dataType) && cast.child.foldable &&
          cast.child.dataType.isInstanceOf[StringType] =>
      Option(cast.child.eval()).flatMap(text =>
        meaning(text.toString, cast.dataType, cast.timeZoneId))
    case _ => None
  }

  /**
   * Returns the first word for a time among the typed literals of `VALUES`. The rows of `VALUES`
   * are constants.
   */
  def inValues(plan: LogicalPlan): Option[String] = plan match {
    case values: LocalRelation =>
      textOf(values.origin)
        .flatMap(Typed.findAllMatchIn(_).find(found => isWord(word(found))))
        .map(_.matched)
    case _ => None
  }

  private def meaning(
      text: String,
      dataType: DataType,
      zone: Option[String]): Option[Expression] =
    if (!isWord(text)) None
    else {
      val zoneId = zone.orElse(Some(SQLConf.get.sessionLocalTimeZone))
      val today = PassingTime(CurrentDate(zoneId))
      val name = text.trim.takeWhile(_.isLetter).toLowerCase(Locale.ROOT)
      (name, dataType) match {
        case ("now", TimestampType) => Some(PassingTime(CurrentTimestamp()))
        case ("now", TimestampNTZType) => Some(PassingTime(LocalTimestamp(zoneId)))
        case ("tomorrow", _) => Some(as(dataType, DateAdd(today, Literal(1)), zoneId))
        case ("yesterday", _) => Some(as(dataType, DateSub(today, Literal(1)), zoneId))
        case _ => Some(as(dataType, today, zoneId))
      }
    }

  private def as(dataType: DataType, date: Expression, zoneId: Option[String]): Expression =
    if (dataType == DateType) date else Cast(date, dataType, zoneId)

  /**
   * Whether Spark parses the text as a time near the current one. A time zone may follow, and
   * Spark ignores it.
   */
  private def isWord(text: String): Boolean =
    !text.trim.toLowerCase(Locale.ROOT).startsWith("epoch") &&
      convertSpecialDate(text, getZoneId(SQLConf.get.sessionLocalTimeZone)).isDefined

  private def isTime(dataType: DataType): Boolean = dataType match {
    case DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }

  /** Returns the source text of an expression. Positions count code points. */
  private def textOf(origin: Origin): Option[String] = for {
    // Positions refer to the text after parameter substitution.
    all <- origin.positionMapper.map(_.substitutedText).orElse(origin.sqlText)
    start <- origin.startIndex
    stop <- origin.stopIndex
    if start >= 0 && start <= stop && stop < all.codePointCount(0, all.length)
  } yield all.substring(all.offsetByCodePoints(0, start), all.offsetByCodePoints(0, stop + 1))

  /** A literal with a type prefix. */
  private val Typed: Regex =
    """(?is)\b(?:DATE|TIMESTAMP(?:_NTZ|_LTZ)?)\b(?:\s|--[^\n]*\n|/\*.*?\*/)*r?(?:'([^']*)'|"([^"]*)")""".r

  private def word(found: Regex.Match): String = Option(found.group(1)).getOrElse(found.group(2))
}
