// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import java.util.Locale

import scala.util.matching.Regex

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.catalyst.util.DateTimeUtils.{convertSpecialDate, getZoneId}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.plans.PassingTime

/**
 * Finds the words that Spark takes for a time near the current one, and says what they mean.
 *
 * {{{
 *   CAST('today' AS DATE), DATE 'today'   =>  current_date()
 *   TIMESTAMP 'now'                       =>  current_timestamp()
 *   TIMESTAMP_NTZ 'yesterday'             =>  CAST(date_sub(current_date(), 1) AS TIMESTAMP_NTZ)
 * }}}
 *
 * Spark's parser has made a constant of `DATE 'today'`, the day on which it was parsed. The constant
 * still knows of which text it was made.
 */
private[analysis] object TimeWord {

  /** The time that an expression means, if it is such a word. */
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

  /** The typed literal among the values of `VALUES` that is such a word: its rows are constants. */
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

  /** Whether Spark takes it for a time near the current one; a time zone may follow, and is ignored. */
  private def isWord(text: String): Boolean =
    !text.trim.toLowerCase(Locale.ROOT).startsWith("epoch") &&
      convertSpecialDate(text, getZoneId(SQLConf.get.sessionLocalTimeZone)).isDefined

  private def isTime(dataType: DataType): Boolean = dataType match {
    case DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }

  /** The text that something was parsed from; positions are counted in code points. */
  private def textOf(origin: Origin): Option[String] = for {
    // positions are those after parameters were put in
    all <- origin.positionMapper.map(_.substitutedText).orElse(origin.sqlText)
    start <- origin.startIndex
    stop <- origin.stopIndex
    if start >= 0 && start <= stop && stop < all.codePointCount(0, all.length)
  } yield all.substring(all.offsetByCodePoints(0, start), all.offsetByCodePoints(0, stop + 1))

  /** A literal with its type before it. */
  private val Typed: Regex =
    """(?is)\b(?:DATE|TIMESTAMP(?:_NTZ|_LTZ)?)\b(?:\s|--[^\n]*\n|/\*.*?\*/)*r?(?:'([^']*)'|"([^"]*)")""".r

  private def word(found: Regex.Match): String = Option(found.group(1)).getOrElse(found.group(2))
}
