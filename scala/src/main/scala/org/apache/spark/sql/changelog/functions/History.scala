// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.apache.spark.sql.catalyst.analysis.{UnresolvedStar, UnresolvedTableValuedFunction}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.types.{BooleanType, DataType, TimestampType}
import org.apache.spark.sql.{AnalysisException, SparkSession}

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.plans.{CommitHistory, KeyedVersions}

/**
 * History: the validity intervals of versions, known as a slowly changing dimension of type 2.
 *
 * Each row of `rows` is a version of its key, valid from the time in `by` until the next version of the key. The
 * history is a function of the rows. Late rows split intervals, and removed rows merge intervals.
 *
 * {{{
 *   id city  ts  gone          id city  ts  valid_from valid_to is_current
 *   1  Bern  10  false         1  Bern  10  10         20       false
 *   1  Oslo  20  false    =>   1  Oslo  20  20         30       false
 *   1  NULL  30  true
 * }}}
 *
 * @param key
 *   the columns that identify the subject of a version
 * @param by
 *   the column with the time of a version; rows without a time are no versions
 * @param track
 *   the columns whose changes start a new interval; empty if every version starts one. Neighbors that are equal in
 *   these columns share an interval, with the values of the last version.
 * @param deleted
 *   the condition of rows that end the interval before them and start none
 */
private[functions] class History(
    rows: LogicalPlan,
    key: Seq[Attribute],
    by: Attribute,
    track: Seq[Attribute],
    deleted: Expression) {
  import History._

  private val ends: NamedExpression = Alias(deleted, "_ends")()
  private val isDeleted = Coalesce(Seq(ends.toAttribute, Literal(false)))

  /** Of versions with equal times, the last one in the order of the remaining columns is valid. */
  private val order: Seq[SortOrder] = {
    val others = rows.output.filterNot(column => (key :+ by).exists(_.exprId == column.exprId))
    (by +: ends.toAttribute +: others)
      .filter(column => RowOrdering.isOrderable(column.dataType))
      .map(SortOrder(_, Ascending))
  }

  def plan: KeyedVersions = {
    val timed = Project(rows.output :+ ends, Filter(IsNotNull(by), rows))
    val next = neighbor("_next", by, isNext = true)
    val next1 = next.toAttribute
    val lastOfTies = Filter(Or(IsNull(next1), LessThan(by, next1)), window(Seq(next), timed))
    val (starting, from, until) =
      if (track.isEmpty) (lastOfTies, by, next1) else merged(lastOfTies)
    val columns = Seq(Alias(from, From)(), Alias(until, To)(), Alias(IsNull(until), IsCurrent)())
    val current = Project(rows.output ++ columns, Filter(Not(isDeleted), starting))
    KeyedVersions(key :+ columns.head.toAttribute, current)
  }

  /** Returns the last version of each run of equal versions, with the run's start and end. */
  private def merged(versions: LogicalPlan): (LogicalPlan, Attribute, Attribute) = {
    val tracked = CreateStruct(isDeleted +: track)
    val before = neighbor("_before", tracked, isNext = false)
    val after = neighbor("_after", tracked, isNext = true)
    def differs(other: Attribute) = Not(EqualNullSafe(tracked, other))
    val starts = Alias(differs(before.toAttribute), "_starts")()
    val stops = Alias(differs(after.toAttribute), "_stops")()
    val bounds = Filter(
      Or(starts.toAttribute, stops.toAttribute),
      Project(
        rows.output ++ Seq(ends.toAttribute, starts, stops),
        window(Seq(before, after), versions)))
    val first = neighbor("_first", by, isNext = false)
    val until = neighbor("_until", by, isNext = true)
    val from = Alias(If(starts.toAttribute, by, first.toAttribute), "_from")()
    val last = Filter(stops.toAttribute, window(Seq(first, until), bounds))
    (Project(last.output :+ from, last), from.toAttribute, until.toAttribute)
  }

  private def window(functions: Seq[NamedExpression], child: LogicalPlan): Window =
    Window(functions, key, order, child)

  private def neighbor(name: String, value: Expression, isNext: Boolean): NamedExpression = {
    val nothing = Literal(null, value.dataType)
    val function =
      if (isNext) Lead(value, Literal(1), nothing, ignoreNulls = false)
      else Lag(value, Literal(1), nothing, ignoreNulls = false)
    Alias(WindowExpression(function, WindowSpecDefinition(key, order, function.frame)), name)()
  }
}

private[functions] object History {
  val From = "valid_from"
  val To = "valid_to"
  val IsCurrent = "is_current"

  def validity(time: DataType): Seq[Attribute] = Seq(
    AttributeReference(From, time, nullable = false)(),
    AttributeReference(To, time)(),
    AttributeReference(IsCurrent, BooleanType, nullable = false)())
}

/**
 * The SQL table function `history`: the rows of a query as versions, with their validity.
 *
 * {{{
 *   history(TABLE(query) [, key] [, history_by] [, track] [, delete_when])
 * }}}
 *
 *   - `key`: the columns that identify the subject of a version; by default a key of the query
 *   - `history_by`: the column with the time of a version; by default a version has the time of the
 *     batch that brought it, and each row of the query is the current version of its key
 *   - `track`: the columns whose changes start a new interval; by default every row starts one
 *   - `delete_when`: the condition of rows that end the validity of the version before them
 */
object HistoryFunction {
  import History._

  val Name = "history"

  private[functions] val Parameters = Seq("history_by", "track", "delete_when")

  val description: FunctionArguments.Description =
    FunctionArguments.describe(Name, "Returns the validity of each version of a row") {
      expressions =>
        apply(new FunctionArguments(Name, "key" +: Parameters, expressions))
    }

  /** Returns a call over a parsed query, to be resolved. */
  def call(query: LogicalPlan, arguments: Map[String, Seq[String]]): LogicalPlan = {
    val named = arguments.toSeq.sortBy(_._1).collect {
      case (name, Seq(value)) => NamedArgumentExpression(name, Literal(value))
      case (name, values) if values.nonEmpty =>
        NamedArgumentExpression(name, CreateArray(values.map(Literal(_))))
    }
    val table = FunctionTableSubqueryArgumentExpression(query)
    Project(Seq(UnresolvedStar(None)), UnresolvedTableValuedFunction(Seq(Name), table +: named))
  }

  private[functions] def apply(arguments: FunctionArguments): LogicalPlan = {
    arguments.source.output
      .find(column => Seq(From, To, IsCurrent).exists(column.name.equalsIgnoreCase))
      .foreach { column =>
        throw analysis(
          "CHANGELOG_COLUMN_RESERVED",
          "column" -> column.name,
          "use" -> "holds the validity of each version",
          "advice" -> s"Select the column under another name, as in ${column.name} AS `${column.name}_1`.")
      }
    val key = arguments.columns("key")
    key.foreach(column => arguments.checkKey(column.name, column.dataType))
    arguments.columns("history_by") match {
      case Seq(by) =>
        if (key.isEmpty) {
          throw arguments.invalid(
            "key",
            "NULL",
            "history_by needs the columns that identify the subject of a version, as in key => array('id')")
        }
        val track = arguments.columns("track").map(orderable(arguments, "track", _))
        val time = orderable(arguments, "history_by", by)
        new History(arguments.source, key, time, track, condition(arguments)).plan
      case Seq() =>
        Parameters.tail.filter(arguments.has).foreach { parameter =>
          throw arguments.invalid(parameter, "given", "it needs history_by")
        }
        CommitHistory(key, validity(TimestampType), arguments.source)
      case several =>
        val names = several.map(_.name).mkString(", ")
        throw arguments.invalid(
          "history_by",
          names,
          "one column with the time of a version is expected")
    }
  }

  private def orderable(
      arguments: FunctionArguments,
      argument: String,
      column: Attribute): Attribute = {
    if (!RowOrdering.isOrderable(column.dataType)) {
      val expected = s"values of type ${column.dataType.sql} have no order"
      throw arguments.invalid(argument, column.name, expected)
    }
    column
  }

  /** Returns the condition of deleting rows, resolved over the source. */
  private def condition(arguments: FunctionArguments): Expression =
    arguments.text("delete_when").fold[Expression](Literal(false)) { text =>
      val session = castToImpl(SparkSession.active)
      try {
        val condition = session.sessionState.sqlParser.parseExpression(text)
        session.sessionState
          .executePlan(Filter(condition, arguments.source))
          .analyzed
          .collectFirst { case filter: Filter => filter.condition }
          .get
      } catch {
        case error @ (_: ParseException | _: AnalysisException) =>
          val reason = error.getMessage.linesIterator.next()
          throw arguments.invalid(
            "delete_when",
            s"'$text'",
            s"a condition on the columns of the source is expected: $reason")
      }
    }
}
