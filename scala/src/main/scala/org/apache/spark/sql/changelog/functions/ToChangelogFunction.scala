// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.StringType

import org.apache.spark.sql.changelog.analysis.ReadStreams
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.plans.{LookupTable, ToChangelog}
import org.apache.spark.sql.changelog.{OutputMode, RowKind}

/**
 * The SQL table function `to_changelog`: the changes of a query's result.
 *
 * {{{
 *   to_changelog(TABLE(query) [, mode] [, key] [, change_type])
 * }}}
 *
 *   - `mode`: `'retract'` (all row kinds), `'upsert'` (by key, no before images) or `'append'`
 *     (inserts only; fails for a query with updates or deletes)
 *   - `key`: the columns by which the reader replaces rows, for `'upsert'`
 *   - `change_type`: the name of the column with the change type, by default `_change_type`
 */
object ToChangelogFunction {
  val Name = "to_changelog"

  val description: FunctionArguments.Description =
    FunctionArguments.describe(Name, "Returns the changes of a query's result")(build)

  private def build(expressions: Seq[Expression]): LogicalPlan = {
    val arguments = new FunctionArguments(Name, Seq("mode", "key", "change_type"), expressions)
    val mode = arguments.choice("mode", OutputMode.values).getOrElse(OutputMode.Retract)
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
    apply(arguments.source, mode, arguments.columns("key"), changeType)
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
  def apply(query: LogicalPlan, mode: OutputMode, key: Seq[Attribute]): ToChangelog =
    apply(query, mode, key, freeName(query))

  /** Returns the changes of `query`. Raw streams are read as insert-only changelogs. */
  private def apply(
      query: LogicalPlan,
      mode: OutputMode,
      key: Seq[Attribute],
      changeTypeName: String): ToChangelog = {
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
    ReadStreams(ToChangelog(mode, key, streaming = false, changeType, query))
  }
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
