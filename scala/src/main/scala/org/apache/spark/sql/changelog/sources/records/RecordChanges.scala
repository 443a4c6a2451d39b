// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.Max
import org.apache.spark.sql.catalyst.plans.Cross
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.plans.{FromChangelog, InputMode}
import org.apache.spark.sql.changelog.sources.records.ParsedRecord._
import org.apache.spark.sql.changelog.sources.snapshots.InitialSnapshot
import org.apache.spark.sql.changelog.sources.{ChangeTypes, NullKeys}
import org.apache.spark.sql.changelog.{ModifyKindSet, RowKind}

/**
 * Reads parsed records as the described table.
 *
 * {{{
 *   records                  =>   FromChangelog _change_kind
 *                                 +- Project [id, name, ..., _change_kind, _unavailable, lsn, ...]
 *                                    +- Generate explode(_changes)
 *                                       +- Project [..., array of struct(kind, row) AS _changes]
 *                                          +- records
 * }}}
 *
 * A changed row is read completely or is a fault, independent of the columns that a query reads.
 * With `input => 'upsert'`, only the key of before images is read.
 *
 * @param columns
 *   the table's columns
 * @param key
 *   the names of the key columns
 * @param sequence
 *   the columns that order the changes of one key
 * @param metadata
 *   metadata columns of the record, beside the table's columns
 * @param unavailable
 *   the texts that represent an unchanged value not sent
 * @param source
 *   the columns of the records
 * @param place
 *   the columns that locate a record, by name, for errors
 * @param onTruncate
 *   the reaction to a record that empties the table
 * @param deadLetters
 *   the files for unreadable records, if any
 * @param snapshot
 *   the rows of the table before the first record, if any
 * @param refusesUnknown
 *   whether a record with further columns is unreadable
 * @param isAnyUnavailable
 *   whether values of every type may be missing from an update
 */
private[changelog] case class RecordChanges(
    columns: Seq[RecordColumn],
    key: Seq[String],
    input: InputMode,
    sequence: Seq[(String, Expression)],
    metadata: Seq[NamedExpression],
    unavailable: Seq[String],
    onError: OnError,
    onTruncate: OnTruncate,
    faults: RecordFaults,
    source: Seq[Attribute],
    place: Seq[(String, Expression)],
    deadLetters: Option[DeadLetters],
    timeZone: String,
    snapshot: Option[InitialSnapshot] = None,
    refusesUnknown: Boolean = false,
    isAnyUnavailable: Boolean = false) {

  private val upserts = input == InputMode.Upsert
  private val isKey: RecordColumn => Boolean = column => key.contains(column.name)

  def read(parsed: ParsedRecord): LogicalPlan =
    if (onTruncate == OnTruncate.Apply && onError != OnError.Return) readSinceTruncation(parsed)
    else readAll(parsed)

  /**
   * Reads the rows whose last change is later than every truncation.
   *
   * {{{
   *   Filter _place > _emptied
   *   +- Join Cross
   *      :- FromChangelog            the table, with the place of each row's last change
   *      +- Aggregate max(_place)    one row: the place of the last truncation
   *         +- FromChangelog         the truncations
   * }}}
   */
  private def readSinceTruncation(parsed: ParsedRecord): LogicalPlan = {
    // a sequence such as a time in seconds may be equal for several records
    val order = sequence ++ place.filter(_._1.equalsIgnoreCase("offset"))
    def placed = Alias(struct(order: _*), "_place")()
    val table = copy(metadata = metadata :+ placed).readAll(parsed)
    val truncations = Project(Seq(placed), Filter(parsed.truncates, parsed.plan))
    val feed = FromChangelog
      .ofInserts(truncations, parsed.plan.isStreaming)
      .copy(reader = Some(faults.function))
    val last = Alias(new Max(feed.output.head).toAggregateExpression(), "_emptied")()
    val both = Join(table, Aggregate(Nil, Seq(last), feed), Cross, None, JoinHint.NONE)
    val emptied = last.toAttribute
    val kept = Filter(Or(IsNull(emptied), GreaterThan(table.output.last, emptied)), both)
    Project(table.output.init, kept)
  }

  private def readAll(parsed: ParsedRecord): LogicalPlan = {
    val record = if (upserts) parsed else parsed.copy(after = completed(parsed))
    val (withAfter, after) = add(record.plan, "_after", row(record.after, columns))
    val oldColumns = if (upserts) columns.filter(isKey) else columns
    val (withBoth, before) = add(withAfter, "_before", row(record.before, oldColumns))
    val (withFault, fault) = add(withBoth, "_fault", faultOf(record, before, after, oldColumns))
    if (onError == OnError.Return) {
      Project(source :+ Alias(fault, "_error")(), Filter(IsNotNull(fault), withFault))
    } else {
      val changes = changesOf(record, before, after)
      // A dropped change has no row.
      val dataType = changes.dataType.asNullable.asInstanceOf[ArrayType]
      val at = RecordFaults.place(place, timeZone)
      val refused = deadLetters match {
        case Some(letters) => letters.keep(dataType, letter(record.record, fault))
        case None => faults.refuse(dataType, fault, at, record.record)
      }
      val told =
        if (onTruncate != OnTruncate.Fail) refused
        else If(record.truncates, faults.refuseTruncation(dataType, at, record.record), refused)
      val (withChanges, all) = add(withFault, "_changes", If(IsNull(fault), changes, told))
      fromChangelog(explode(withChanges, all), record.plan.isStreaming)
    }
  }

  /** Returns the dead letter of an unreadable record. */
  private def letter(record: Expression, fault: Expression): Expression = {
    val source = struct(place: _*)
    val told = if (place.isEmpty) Nil else Seq("source" -> source)
    StructsToJson(
      Map.empty,
      struct(Seq("error" -> fault, "record" -> record) ++ told: _*),
      Some(timeZone))
  }

  private def fromChangelog(changes: LogicalPlan, streaming: Boolean): FromChangelog = {
    val change = changes.output.last
    val kind = Alias(field(change, "kind"), "_change_kind")()
    val names = columns.map(_.name)
    val rows =
      columns.map(column => Alias(field(field(change, "row"), column.name), column.name)())
    val kept = Alias(field(change, "unavailable"), "_unavailable")()
    val order = sequence.map { case (name, value) => Alias(value, s"_$name")() }
    val read = Project((rows ++ metadata ++ order :+ kind :+ kept), changes)
    val (all, isSnapshot) = snapshot match {
      case None => (read, None)
      case Some(snapshot) =>
        // Snapshot rows need no sequence. Without a sequence, snapshot rows are older than every
        // change.
        val optional = metadata.map(column => column.exprId -> column.name) ++
          order.zip(sequence).map { case (column, (name, _)) => column.exprId -> name }
        val constants =
          Seq(kind -> Literal(RowKind.Insert), kept -> Literal(null, kept.dataType))
        val (both, isSnapshot) = snapshot.beside(
          read,
          optional.toMap,
          constants.map { case (column, value) => column.exprId -> value }.toMap)
        (both, Some(isSnapshot))
    }
    // The nullability of columns depends on the snapshot too.
    val columnOf = AttributeMap(all.output.map(column => column -> column))
    val keyColumns = key.map(name => columnOf(rows(names.indexOf(name)).toAttribute))
    val output = (rows ++ metadata).map(column => columnOf(column.toAttribute))
    FromChangelog(
      Some(kindOf(columnOf(kind.toAttribute), isSnapshot, keyColumns, output)),
      ModifyKindSet.All,
      input,
      keyColumns,
      order.map(column => columnOf(column.toAttribute)),
      onError == OnError.Drop,
      streaming,
      output,
      all,
      if (upserts) Some(columnOf(kept.toAttribute)) else None,
      reader = Some(faults.function),
      snapshot = isSnapshot)
  }

  /** Returns the kind of a change. Records with a NULL key are already handled. */
  private def kindOf(
      kind: Attribute,
      isSnapshot: Option[Attribute],
      keyColumns: Seq[Attribute],
      output: Seq[Attribute]): Expression = isSnapshot match {
    case None => kind
    case Some(isSnapshot) =>
      val types = ChangeTypes.standard(kind.name, onError == OnError.Drop)
      val branches = NullKeys.branches(types, keyColumns, output).map { case (isNull, handled) =>
        And(isSnapshot, isNull) -> handled
      }
      if (branches.isEmpty) kind else CaseWhen(branches, kind)
  }

  private def explode(plan: LogicalPlan, changes: Attribute): LogicalPlan = {
    val element = changes.dataType.asInstanceOf[ArrayType].elementType
    val change = AttributeReference("_change", element)()
    Generate(Explode(changes), Nil, outer = false, None, Seq(change), plan)
  }

  /** Returns the row of an image. Columns outside `read` are NULL. */
  private def row(image: RecordImage, read: Seq[RecordColumn]): Expression = {
    val values = columns.map { column =>
      if (!read.contains(column)) Literal(null, column.dataType)
      else {
        val text = image.text(column.name)
        val value = column.read(text, image.described(column.name))
        if (isUnavailableAt(column)) {
          If(isUnavailable(text), Literal(null, column.dataType), value)
        } else value
      }
    }
    struct(columns.map(_.name).zip(values): _*)
  }

  /** Returns the after image, with values not sent taken from the before image. */
  private def completed(record: ParsedRecord): RecordImage =
    record.after.copy(text = name => {
      val text = record.after.text(name)
      if (!columns.exists(column => column.name == name && isUnavailableAt(column))) text
      else If(isUnavailable(text), record.before.text(name), text)
    })

  private def isUnavailableAt(column: RecordColumn): Boolean =
    unavailable.nonEmpty && (isAnyUnavailable || column.mayBeUnavailable) && !isKey(column)

  private def isUnavailable(text: Expression): Expression = isOneOf(text, unavailable: _*)

  private def faultOf(
      record: ParsedRecord,
      before: Attribute,
      after: Attribute,
      oldColumns: Seq[RecordColumn]): Expression = {
    val readable = Not(record.skipped)
    val noOldRow =
      if (upserts) "it is a delete that doesn't tell which row, as its old row is missing"
      else {
        "its old row is missing. Let the source send it, as with REPLICA IDENTITY FULL, or give " +
          "the key of the table, by which it is then restored"
      }
    val needsOld = if (upserts) record.deletes else Or(record.deletes, record.updates)
    val readsOld =
      And(record.before.exists, if (upserts) Literal(true) else needsOld)
    val known = columns.map(column => literal(column.name))
    val unknown = record.after.sent.filter(_ => refusesUnknown).map { sent =>
      val names = ArrayJoin(ArrayExcept(sent, CreateArray(known)), literal(", "), None)
      val fault =
        Concat(Seq(literal("its columns "), names, literal(" are not in the argument schema")))
      Not(record.deletes) -> If(EqualTo(names, literal("")), NoText, fault)
    }
    val faults = unknown.toSeq ++ Seq(
      And(needsOld, Not(record.before.exists)) -> literal(noOldRow),
      And(Not(record.deletes), Not(record.after.exists)) -> literal("its new row is missing"),
      Not(record.deletes) -> imageFault(record.after, after, columns),
      readsOld -> imageFault(record.before, before, oldColumns))
    val told = faults.map { case (applies, fault) =>
      And(And(readable, applies), IsNotNull(fault)) -> fault
    }
    val truncates =
      if (onTruncate != OnTruncate.Fail) Nil
      else Seq(record.truncates -> literal("it truncates the table"))
    // For an unparsable record, `skipped` is unknown.
    firstFault((IsNotNull(record.fault) -> record.fault) +: (truncates ++ told))
  }

  private def imageFault(
      image: RecordImage,
      row: Attribute,
      read: Seq[RecordColumn]): Expression = {
    val faults = read.flatMap { column =>
      val text = image.text(column.name)
      val value = field(row, column.name)
      val unread = And(IsNotNull(text), IsNull(value))
      val isFault =
        if (!isUnavailableAt(column)) unread
        else if (upserts) And(unread, Not(isUnavailable(text)))
        else unread
      val fault = isFault -> column.fault(text, image.described(column.name))
      val required =
        if (isKey(column)) Seq(IsNull(text) -> literal(s"its key column ${column.name} is NULL"))
        else if (!column.field.nullable) {
          Seq(IsNull(text) -> literal(s"column ${column.name} is NULL, but declared NOT NULL"))
        } else Nil
      fault +: required
    }
    firstFault(faults)
  }

  private def changesOf(record: ParsedRecord, before: Attribute, after: Attribute): Expression = {
    val added = change(RowKind.UpdateAfter, after, columnsNotSent(record.after))
    val removed = change(RowKind.Delete, before)
    val changes =
      if (upserts) {
        val moved = key.map { name =>
          Not(EqualNullSafe(field(before, name), field(after, name)))
        }
        val moves =
          if (key.isEmpty) Literal(false)
          else And(record.before.exists, moved.reduce[Expression](Or(_, _)))
        CaseWhen(
          Seq(
            record.deletes -> CreateArray(Seq(removed)),
            moves -> CreateArray(Seq(removed, added))),
          CreateArray(Seq(added)))
      } else {
        val inserted = change(RowKind.Insert, after)
        val replaced = Seq(change(RowKind.UpdateBefore, before), added)
        CaseWhen(
          Seq(
            record.deletes -> CreateArray(Seq(removed)),
            record.updates -> CreateArray(replaced)),
          CreateArray(Seq(inserted)))
      }
    If(record.skipped, Literal(null, changes.dataType), changes)
  }

  private def change(
      kind: Byte,
      row: Expression,
      unavailable: Expression = Literal(null, ArrayType(StringType))): Expression =
    struct("kind" -> Literal(kind), "row" -> row, "unavailable" -> unavailable)

  /** Returns the names of columns not sent by an update. NULL if all were sent. */
  private def columnsNotSent(image: RecordImage): Expression = {
    val affected = columns.filter(isUnavailableAt)
    val none = Literal(null, ArrayType(StringType))
    if (affected.isEmpty || !upserts) none
    else {
      val isAffected = affected.map(column => isUnavailable(image.text(column.name)))
      val names = affected.zip(isAffected).map { case (column, missing) =>
        If(missing, literal(column.name), NoText)
      }
      If(isAffected.reduce[Expression](Or(_, _)), CreateArray(names), none)
    }
  }
}
