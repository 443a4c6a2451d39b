// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.catalyst.expressions.{Literal, RowOrdering}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.{quoteIdentifier, quoteNameParts}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.SqlCommand
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * `CREATE FLOW f AS AUTO CDC INTO v …` and `CREATE STREAMING TABLE v FLOW AUTO CDC …`: a materialized view of the rows
 * that a stream of change events describes.
 *
 * {{{
 *   events of a key     the last one, unless it deletes       SCD TYPE 1
 *                       history(…), without deleting ones     SCD TYPE 2
 * }}}
 * Arrival order does not matter, because the view is a function of all events.
 *
 * @param source
 *   the stream, as SQL
 * @param sequence
 *   the expression that orders the events of a key; events with NULL are ignored
 */
case class AutoCdc(
    source: String,
    keys: Seq[String],
    sequence: String,
    deletion: Option[String],
    truncation: Option[String],
    ignoresNulls: Boolean,
    columns: AutoCdc.Columns,
    scdType: Long,
    tracked: AutoCdc.Columns) {
  import AutoCdc._

  /** Rejects clauses that do not go together. */
  def check(view: String): AutoCdc = {
    def refuse(clause: String, advice: String) =
      throw analysis(
        "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
        "view" -> view,
        "clause" -> clause,
        "advice" -> advice)
    if (scdType != 1 && scdType != 2) {
      refuse(s"STORED AS SCD TYPE $scdType", "Types 1 and 2 exist.")
    }
    if (truncation.nonEmpty && scdType == 2) {
      refuse("APPLY AS TRUNCATE WHEN with SCD TYPE 2", "Only SCD TYPE 1 can be emptied.")
    }
    if (tracked != Columns.all && scdType == 1) {
      refuse("TRACK HISTORY ON with SCD TYPE 1", "Only SCD TYPE 2 has a history.")
    }
    this
  }

  /** Returns the query of the view over the columns of the source. */
  def query(schema: StructType): String = {
    val names = schema.fieldNames.toSeq
    val clauses =
      Seq("KEYS" -> keys, "COLUMNS" -> columns.names, "TRACK HISTORY ON" -> tracked.names)
    for ((clause, listed) <- clauses; name <- listed if !has(names, name)) {
      throw analysis(
        "CHANGELOG_COLUMN_NOT_FOUND",
        "function" -> "AUTO CDC",
        "argument" -> clause,
        "column" -> name,
        "columns" -> names)
    }
    val shown = columns.of(names)
    if (scdType == 1) latest(shown) else history(schema, shown)
  }

  private val events =
    s"SELECT * FROM (SELECT *, ($sequence) AS $Sequence, coalesce(${deletion.getOrElse("false")}, false) AS $Deleted, " +
      s"coalesce(${truncation.getOrElse("false")}, false) AS $Truncated FROM $source) WHERE $Sequence IS NOT NULL"

  private val emptied = s"(SELECT max($Sequence) AS $Emptied FROM ($events) WHERE $Truncated)"
  private val isAfter = s"($Emptied IS NULL OR $Sequence > $Emptied)"

  private def rows(schema: Seq[String]): String = {
    val changes = s"SELECT * FROM ($events) WHERE NOT $Truncated"
    if (!ignoresNulls) changes
    else {
      // a value before the last truncation is no value to keep
      val since =
        if (truncation.isEmpty) changes
        else s"SELECT * FROM ($changes) CROSS JOIN $emptied WHERE $isAfter"
      val filled = schema.filterNot(isKey).map { name =>
        val column = quoteIdentifier(name)
        s"last_value(CASE WHEN NOT $Deleted THEN $column END, true) OVER (PARTITION BY ${list(keys)}, $Life ORDER BY $Sequence) AS $column"
      }
      val lives =
        s"SELECT *, count_if($Deleted) OVER (PARTITION BY ${list(keys)} ORDER BY $Sequence) AS $Life FROM ($since)"
      s"SELECT ${(keys.map(quoteIdentifier) ++ filled).mkString(", ")}, $Sequence, $Deleted FROM ($lives)"
    }
  }

  private def latest(shown: Seq[String]): String = {
    val ranked =
      s"SELECT *, row_number() OVER (PARTITION BY ${list(keys)} ORDER BY $Sequence DESC) AS $Rank FROM (${rows(shown)})"
    val last = s"(SELECT * FROM ($ranked) WHERE $Rank = 1)"
    val (from, isKept) =
      if (truncation.isEmpty || ignoresNulls) (last, "")
      else (s"$last CROSS JOIN $emptied", s" AND $isAfter")
    s"SELECT ${list(shown)} FROM $from WHERE NOT $Deleted$isKept"
  }

  private def history(schema: StructType, shown: Seq[String]): String = {
    val unordered = schema.filterNot(field => RowOrdering.isOrderable(field.dataType)).map(_.name)
    val compared =
      if (!tracked.isExcept) tracked.names
      else
        tracked
          .of(shown.filterNot(isKey))
          .filterNot(has(unordered, _))
    // without a column to compare, the versions of a key share one interval
    val track = if (compared.isEmpty) keys else compared
    val versions =
      s"SELECT ${list(keys ++ shown.filterNot(isKey))}, $Sequence, $Deleted FROM (${rows(schema.fieldNames.toSeq)})"
    s"SELECT ${list(shown)}, valid_from AS __START_AT, valid_to AS __END_AT FROM history(TABLE($versions), " +
      s"key => ${texts(keys)}, history_by => '$Sequence', track => ${texts(track)}, delete_when => '$Deleted')"
  }

  private def isKey(column: String): Boolean = has(keys, column)

  private def list(names: Seq[String]): String = names.map(quoteIdentifier).mkString(", ")

  private def texts(names: Seq[String]): String =
    names.map(_.replace("\\", "\\\\").replace("'", "\\'")).mkString("array('", "', '", "')")
}

object AutoCdc {
  private val Sequence = "__sequence"
  private val Deleted = "__deleted"
  private val Truncated = "__truncated"
  private val Emptied = "__emptied"
  private val Rank = "__rank"
  private val Life = "__life"

  /** Whether a column is listed, in any case. */
  private def has(listed: Seq[String], column: String): Boolean =
    listed.exists(_.equalsIgnoreCase(column))

  /** A choice of columns: the listed ones, or all except the listed ones. */
  case class Columns(names: Seq[String], isExcept: Boolean) {
    def of(all: Seq[String]): Seq[String] =
      if (isExcept) all.filterNot(has(names, _)) else names
  }

  object Columns {
    val all: Columns = Columns(Nil, isExcept = true)
  }

  /** Returns the command that creates and fills the view. */
  def create(
      view: Seq[String],
      ifNotExists: Boolean,
      comment: Option[String],
      flow: AutoCdc): LogicalPlan =
    SqlCommand.unit("AUTO CDC", view, flow) { session =>
      val name = quoteNameParts(view)
      val query = flow.check(name).query(session.sql(s"SELECT * FROM ${flow.source}").schema)
      val condition = if (ifNotExists) "IF NOT EXISTS " else ""
      val commented = comment.fold("")(text => s" COMMENT ${Literal(text).sql}")
      session.sql(s"CREATE MATERIALIZED VIEW $condition$name$commented AS $query")
    }
}
