// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{CollectList, Count}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.{ArrayType, DataType, StringType}

import org.apache.spark.sql.changelog.analysis.ReadStreams
import org.apache.spark.sql.changelog.errors.ChangelogErrors.{analysis, runtime}
import org.apache.spark.sql.changelog.plans.{
  Emission, KeyedVersions, LookupTable, TableAsOf, ToChangelog
}
import org.apache.spark.sql.changelog.{OutputMode, RowKind}

/**
 * The SQL table function `to_changelog`: the changes of a query's result.
 *
 * {{{
 *   to_changelog(TABLE(query) [, mode] [, key] [, change_type] [, emit] [, count_rows]
 *                [, duplicates] [, history] [, history_by] [, track] [, delete_when])
 * }}}
 *
 *   - `mode`: `'retract'` (all row kinds), `'upsert'` (by key, no before images) or `'append'`
 *     (inserts only; fails for a query with updates or deletes)
 *   - `key`: the columns by which the reader replaces rows, for `'upsert'`
 *   - `change_type`: the name of the column with the change type, by default `_change_type`
 *   - `emit`: when changes are emitted, see [[Emission]]
 *   - `count_rows`: the name of a column with the number of equal rows. Each distinct row is then
 *     returned once, and the whole row is the key
 *   - `duplicates`: `'fail'` to accept a `key` that need not be a key of the query. A batch after
 *     which two rows have an equal key fails
 *   - `history`: `'scd2'` for the validity of each row of the query, as a version of `key`
 *   - `history_by`: the column with the time of a version; by default the time of the batch
 *   - `track`: the columns whose changes start a new version; by default every row starts one
 *   - `delete_when`: the condition of rows that end the validity of the version before them
 */
object ToChangelogFunction {
  val Name = "to_changelog"

  val description: FunctionArguments.Description =
    FunctionArguments.describe(Name, "Returns the changes of a query's result")(build)

  private def build(expressions: Seq[Expression]): LogicalPlan = {
    val arguments = new FunctionArguments(
      Name,
      Seq("mode", "key", "change_type", "emit", "count_rows", "duplicates", "history") ++
        HistoryFunction.Parameters,
      expressions)
    val emission = arguments.text("emit").fold[Emission](Emission.Changes) { text =>
      Emission.parse(text).getOrElse {
        throw arguments.invalid("emit", s"'$text'", s"${Emission.Grammar} is expected")
      }
    }
    val mode = modeOf(arguments, emission)
    val changeType = arguments.text("change_type").getOrElse(RowKind.ChangeTypeColumnName)
    if (changeType.isEmpty) {
      throw arguments.invalid("change_type", "''", "the name of a column is expected")
    }
    findColumn(arguments.source, changeType).foreach { column =>
      throw analysis(
        "CHANGELOG_COLUMN_RESERVED",
        "column" -> column.name,
        "use" -> "holds the change type of each emitted row",
        "advice" -> ("Rename the reserved column, as with change_type => 'op'. If the column of the query " +
          "holds the change type of its rows, read the rows with from_changelog first."))
    }
    val counts = arguments.text("count_rows")
    val checks = arguments.choice("duplicates", Seq("fail")).nonEmpty
    if (checks && (counts.nonEmpty || arguments
        .has("history") || arguments.columns("key").isEmpty)) {
      throw arguments.invalid(
        "duplicates",
        "'fail'",
        "a key is expected, and neither count_rows nor history")
    }
    arguments.choice("history", Seq("scd2")) match {
      case Some(_) =>
        counts.foreach { name =>
          throw arguments.invalid("count_rows", s"'$name'", "a history has a row per version")
        }
        val versions = HistoryFunction(arguments)
        val key = versions match {
          case keyed: KeyedVersions => keyed.key
          case _ => Nil
        }
        apply(versions, mode, key, changeType, emission)
      case None =>
        HistoryFunction.Parameters.filter(arguments.has).foreach { parameter =>
          throw arguments.invalid(parameter, "given", "it needs history => 'scd2'")
        }
        val key = arguments.columns("key")
        val query =
          if (checks) withOneRowPerKey(arguments.source, key)
          else counts.fold(arguments.source)(counted(arguments, _))
        apply(query, mode, key, changeType, emission)
    }
  }

  /** Returns the rows of `query`, which fails if two rows have an equal key. */
  private def withOneRowPerKey(query: LogicalPlan, key: Seq[Attribute]): LogicalPlan = {
    val rows = CollectList(CreateStruct(query.output)).toAggregateExpression()
    val row = Alias(OnlyRow(rows, key.map(_.name)), "row")()
    val columns = query.output.zipWithIndex.map { case (column, at) =>
      if (key.contains(column)) column
      else Alias(GetStructField(row.toAttribute, at), column.name)()
    }
    Project(columns, Aggregate(key, key :+ row, query))
  }

  /** Returns the distinct rows of the query, with the number of equal rows in the column `name`. */
  private def counted(arguments: FunctionArguments, name: String): LogicalPlan = {
    val query = arguments.source
    if (name.isEmpty || findColumn(query, name).isDefined) {
      val expected = "a name is expected that is not a column of the query"
      throw arguments.invalid("count_rows", s"'$name'", expected)
    }
    val count = Alias(Count(Literal(1L)).toAggregateExpression(), name)()
    Aggregate(query.output, query.output :+ count, query)
  }

  /** Returns the mode given, or the mode that suits `emission`. */
  private def modeOf(arguments: FunctionArguments, emission: Emission): OutputMode = {
    def only(modes: OutputMode*) = {
      val named = arguments.choice("mode", OutputMode.values)
      named.filterNot(modes.contains).foreach { mode =>
        throw arguments.invalid(
          "mode",
          s"'$mode'",
          s"${modes.mkString("'", "' or '", "'")} is expected with emit => " +
            arguments.text("emit").fold("")(text => s"'$text'"))
      }
      named.getOrElse(modes.head)
    }
    emission match {
      case Emission.OnClose(0) => only(OutputMode.Append)
      case _: Emission.OnClose => only(OutputMode.Retract, OutputMode.Upsert)
      case _ => only(OutputMode.values: _*)
    }
  }

  private def findColumn(query: LogicalPlan, name: String): Option[Attribute] =
    query.output.find(_.name.equalsIgnoreCase(name))

  /** Returns a name for the change type that no column of the query has. */
  private def freeName(query: LogicalPlan): String = {
    val name = RowKind.ChangeTypeColumnName
    Iterator
      .iterate(1)(_ + 1)
      .map(number => if (number == 1) name else s"${name}_$number")
      .find(findColumn(query, _).isEmpty)
      .get
  }

  /** Returns the changes of `query`, with an unused name for the change type. */
  def apply(
      query: LogicalPlan,
      mode: OutputMode,
      key: Seq[Attribute],
      emission: Emission = Emission.Changes): ToChangelog =
    apply(query, mode, key, freeName(query), emission)

  /** Returns the changes of `query`. Raw streams are read as insert-only changelogs. */
  private def apply(
      query: LogicalPlan,
      mode: OutputMode,
      key: Seq[Attribute],
      changeTypeName: String,
      emission: Emission): ToChangelog = {
    query.foreach {
      case _: ToChangelog =>
        throw analysis(
          "CHANGELOG_NESTED",
          "function" -> Name,
          "outer" -> Name,
          "advice" -> "Apply to_changelog once, to the whole query; use from_changelog to read changes again.")
      case _ =>
    }
    query.collect { case node => RowKind.find(node.output) }.flatten.headOption.foreach {
      column =>
        throw analysis(
          "CHANGELOG_COLUMN_RESERVED",
          "column" -> column.name,
          "use" -> "holds the row kind of each row",
          "advice" -> (s"Select the column under another name, as in SELECT * EXCEPT (${column.name}), " +
            s"${column.name} AS `${column.name}_1`."))
    }
    val changeType = AttributeReference(changeTypeName, StringType, nullable = false)()
    ReadStreams(ToChangelog(mode, key, streaming = false, changeType, query, emission = emission))
  }
}

/** Returns the only element of `rows`. Several elements are rows of one key, and fail. */
case class OnlyRow(rows: Expression, key: Seq[String])
    extends UnaryExpression
    with CodegenFallback {

  override def child: Expression = rows

  override def dataType: DataType = rows.dataType.asInstanceOf[ArrayType].elementType

  override def nullable: Boolean = false

  override def eval(input: InternalRow): Any = {
    val elements = rows.eval(input).asInstanceOf[ArrayData]
    val first = elements.get(0, dataType)
    if (elements.numElements() > 1) {
      def textOf(row: Any) = ToPrettyString(Literal(row, dataType), Some("UTC")).eval()
      throw runtime(
        "CHANGELOG_OUTPUT_KEY_DUPLICATE",
        "key" -> key.mkString("(", ", ", ")"),
        "rows" -> elements.numElements(),
        "first" -> textOf(first),
        "second" -> textOf(elements.get(1, dataType)))
    }
    first
  }

  override protected def withNewChildInternal(newChild: Expression): OnlyRow =
    copy(rows = newChild)
}

/**
 * The SQL table function `lookup`: a table as of the arrival of each joined row.
 *
 * {{{
 *   SELECT ... FROM orders JOIN lookup(TABLE(rates)) r ON orders.cur = r.cur
 * }}}
 *
 * Each row of `orders` is joined once, with the rates after the batch of its arrival. Later
 * changes of rates do not affect the row.
 */
object LookupFunction {
  val Name = "lookup"

  val description: FunctionArguments.Description =
    FunctionArguments.describe(Name, "Joins each row once, with a table as of its arrival")(build)

  private def build(expressions: Seq[Expression]): LogicalPlan =
    LookupTable(new FunctionArguments(Name, Nil, expressions).source)
}

/**
 * The SQL table function `versions_of`: a table as of a time of each row that it is joined with.
 *
 * {{{
 *   SELECT ... FROM orders o JOIN LATERAL versions_of(TABLE(rates), at => o.at) r ON o.cur = r.cur
 *   SELECT ... FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.at r ON o.cur = r.cur
 * }}}
 *
 * Both are the same join, which [[org.apache.spark.sql.changelog.analysis.ResolveTableAsOf]] resolves.
 */
object VersionsOfFunction {
  val Name = "versions_of"

  val description: FunctionArguments.Description =
    FunctionArguments.describe(
      Name,
      "Returns the rows of a table as of a time of the joined row")(build)

  private def build(expressions: Seq[Expression]): LogicalPlan = {
    val arguments = new FunctionArguments(Name, Seq("at"), expressions)
    TableAsOf(arguments.value("at"), arguments.source)
  }
}
