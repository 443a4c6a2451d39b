// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.plans.{Duplicates, FromChangelog, InputMode}
import org.apache.spark.sql.changelog.sources.{ChangeTypes, NullKeys}
import org.apache.spark.sql.changelog.{ModifyKindSet, RowKind}

/**
 * The SQL table function `from_changelog`: rows that describe changes, read as a table.
 *
 * {{{
 *   from_changelog(TABLE(source) [, change_type] [, key] [, input] [, sequence_by]
 *                  [, change_types] [, on_error] [, duplicates] [, snapshot])
 * }}}
 *
 *   - `change_type`: the column with the change type; without it every row is an insert
 *   - `key`: columns that identify a row of the table
 *   - `input`: `'retract'` for a feed with before images, or `'upsert'` to restore them by key
 *   - `sequence_by`: columns that order the changes of one key
 *   - `change_types`: `map('your value', '+I', ...)` instead of the known change types
 *   - `on_error`: `'fail'`, or `'drop'` to skip and count unreadable rows
 *   - `duplicates`: `'trust'` for a unique key, or `'warn'` or `'fail'` for a check of the key
 *   - `snapshot`: `TABLE(t)` with the rows of the table before the first change
 */
object FromChangelogFunction {
  val Name = "from_changelog"

  val description: FunctionArguments.Description =
    FunctionArguments.describe(Name, "Reads changes as the table they describe")(build)

  /**
   * Returns the plan of `from_changelog(TABLE(stream), changeType, key)`, for a stream whose retractions have the bytes
   * of the retracted rows.
   */
  def ofChanges(stream: LogicalPlan, changeType: String, key: Seq[String] = Nil): LogicalPlan = {
    val arguments = Seq(FunctionTableSubqueryArgumentExpression(stream), Literal(changeType))
    build(arguments ++ Option.when(key.nonEmpty)(CreateArray(key.map(Literal(_)))))
      .copy(repeatsBytes = true)
  }

  private val parameters = Seq(
    "change_type",
    "key",
    "input",
    "sequence_by",
    "change_types",
    "on_error",
    "duplicates",
    FunctionArguments.Snapshot)

  private def build(expressions: Seq[Expression]): FromChangelog = {
    val arguments = new FunctionArguments(Name, parameters, expressions)
    arguments.checkNotNested()
    val changeType = arguments.text("change_type").map(arguments.column("change_type", _))
    changeType.filterNot(_.dataType.isInstanceOf[StringType]).foreach { column =>
      throw arguments.invalid(
        "change_type",
        column.name,
        s"a STRING column is expected, not ${column.dataType.sql}")
    }
    val input = arguments.inputMode(InputMode.Retract)
    val named = arguments.columns("key")
    val snapshot = arguments.snapshot(named, SQLConf.get.sessionLocalTimeZone)
    val (source, isSnapshot) = snapshot match {
      case None => (arguments.source, None)
      case Some(snapshot) =>
        val nulls = changeType.map(column => column.exprId -> Literal(null, column.dataType))
        val (both, isSnapshot) = snapshot.beside(arguments.source, constants = nulls.toMap)
        (both, Some(isSnapshot))
    }
    // The nullability of columns depends on the snapshot too.
    val columns = AttributeMap(source.output.map(column => column -> column))
    val key = keyColumns(arguments, named.map(columns), changeType, input)
    val drop = arguments.choice("on_error", Seq("fail", "drop")).contains("drop")
    val types = changeTypes(arguments, changeType, input, drop)
    val hidden = changeType ++ isSnapshot
    val output = source.output.filterNot(column => hidden.exists(_.exprId == column.exprId))
    FromChangelog(
      kindExpression(source.output, changeType, isSnapshot, key, input, types),
      // An insert of a row already in the snapshot is an update.
      if (changeType.nonEmpty)
        types.produces.copy(update = types.produces.update || snapshot.nonEmpty)
      else if (input == InputMode.Upsert) ModifyKindSet.InsertUpdate
      else ModifyKindSet.InsertOnly,
      input,
      key,
      sequenceColumns(arguments).map(columns),
      drop,
      source.isStreaming,
      output,
      source,
      duplicates = duplicates(arguments, key, input),
      snapshot = isSnapshot)
  }

  private def duplicates(
      arguments: FunctionArguments,
      key: Seq[Attribute],
      input: InputMode): Duplicates = {
    val duplicates =
      arguments.choice("duplicates", Duplicates.values).getOrElse(Duplicates.Trust)
    def refused(expected: String) =
      throw arguments.invalid("duplicates", s"'$duplicates'", expected)
    if (duplicates != Duplicates.Trust) {
      if (key.isEmpty) {
        refused("the check needs a key, as in key => array('id')")
      }
      if (input == InputMode.Upsert) {
        refused("with input => 'upsert' a new row replaces the earlier row of its key")
      }
    }
    duplicates
  }

  private def keyColumns(
      arguments: FunctionArguments,
      key: Seq[Attribute],
      changeType: Option[Attribute],
      input: InputMode): Seq[Attribute] = {
    key.foreach { column =>
      if (changeType.exists(_.exprId == column.exprId)) {
        throw arguments.invalid("key", column.name, "the column holds the change type")
      }
      arguments.checkKey(column.name, column.dataType)
    }
    if (input == InputMode.Upsert && key.isEmpty) {
      throw arguments.invalid(
        "key",
        "NULL",
        "input => 'upsert' needs the columns that identify a row, as in key => array('id')")
    }
    key.distinct
  }

  private def sequenceColumns(arguments: FunctionArguments): Seq[Attribute] = {
    val sequence = arguments.columns("sequence_by")
    sequence.filterNot(column => RowOrdering.isOrderable(column.dataType)).foreach { column =>
      val expected = s"values of type ${column.dataType.sql} have no order"
      throw arguments.invalid("sequence_by", column.name, expected)
    }
    sequence
  }

  private def changeTypes(
      arguments: FunctionArguments,
      changeType: Option[Attribute],
      input: InputMode,
      drop: Boolean): ChangeTypes = {
    val column = changeType.map(_.name).getOrElse("")
    arguments.mapping("change_types") match {
      case None =>
        ChangeTypes.standard(column, drop, hasOldRows = input == InputMode.Retract)
      case Some(mapping) =>
        val kinds = mapping.map { case (text, kind) =>
          text -> ChangeTypes.parseKind(kind).getOrElse {
            throw arguments.invalid(
              "change_types",
              s"'$kind' for '$text'",
              "each value must be one of '+I', '-U', '+U', '-D'")
          }
        }
        val found = kinds.values.toSet
        if (input == InputMode.Retract && found.contains(RowKind.UpdateAfter) &&
          !found.contains(RowKind.UpdateBefore)) {
          throw arguments.invalid(
            "change_types",
            mapping.mkString(", "),
            "a feed with '+U' but no '-U' needs input => 'upsert' and a key")
        }
        new ChangeTypes(column, kinds, drop)
    }
  }

  /**
   * Returns the row kind of each row, or `Dropped` for rows to skip. The result is empty for an
   * insert-only feed.
   */
  private def kindExpression(
      row: Seq[Attribute],
      changeType: Option[Attribute],
      isSnapshot: Option[Attribute],
      key: Seq[Attribute],
      input: InputMode,
      types: ChangeTypes): Option[Expression] = {
    val target = Literal.fromObject(types)
    val kind = changeType match {
      case Some(column) =>
        Some(
          Invoke(
            target,
            "kindOf",
            ByteType,
            Seq(column),
            propagateNull = false,
            returnNullable = false))
      case None if input == InputMode.Upsert => Some(Literal(RowKind.UpdateAfter))
      case None => None
    }
    val branches = NullKeys.branches(types, key, row) ++
      isSnapshot.map(_ -> Literal(RowKind.Insert))
    if (branches.isEmpty) kind
    else Some(CaseWhen(branches, kind.getOrElse(Literal(RowKind.Insert))))
  }
}
