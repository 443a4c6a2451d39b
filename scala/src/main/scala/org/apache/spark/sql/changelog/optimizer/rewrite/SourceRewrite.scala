// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.expressions.objects.{Invoke, StaticInvoke}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.{BooleanType, ByteType, DataType, IntegerType}
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.{GroupByMaps, SparkRules}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, DescribeNode}
import org.apache.spark.sql.changelog.microbatch.SampledBatch
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.sources.records.DeadLetters

/**
 * Reads the row kind of a source's rows.
 * {{{
 *   FromChangelog op                =>   Project [..., kindOf(op) AS _row_kind]
 *   +- rows                              +- rows
 *
 *   FromChangelog op, key, upsert   =>   ChangelogNormalize key
 *   +- rows                              +- Project [..., kindOf(op) AS _row_kind, _position]
 *                                           +- rows
 *
 *   FromChangelog op, key, duplicates => ChangelogUnique key
 *   +- rows                              +- Project [..., kindOf(op) AS _row_kind]
 *                                           +- rows
 * }}}
 *
 * Rows of a snapshot have positions below the positions of changes.
 */
private[optimizer] object SourceRewrite extends RewriteOf[FromChangelog] {

  /** The observed metric with the number of rows skipped by `on_error => 'drop'`. */
  val DroppedRowsMetric = "numDroppedRows"

  override protected def rewrite(source: FromChangelog, context: RewriteContext): LogicalPlan = {
    import context.{ids, node}
    source.input match {
      case InputMode.Upsert => normalize(source, node, ids)
      case InputMode.Retract =>
        val (rows, kind) = read(source, ids.nextSource())
        NodeRewrite.select(
          if (source.checksKey) unique(source, rows, kind, ids) else rows,
          source.output,
          withKind = kind.isDefined && !node.mode.isInsertOnly)
    }
  }

  /** Nets the changes of a source. */
  def netted(source: FromChangelog, changes: LogicalPlan): LogicalPlan =
    if (source.input != InputMode.Retract || RowKind.find(changes.output).isEmpty) changes
    else if (source.key.isEmpty) ChangelogConsolidate.byRow(source.output, changes)
    else ChangelogConsolidate.byKey(source.key, changes)

  /** Counts a sample of the keys of a source. Not with a snapshot, whose rows may arrive again as changes. */
  def sampled(source: FromChangelog, changes: LogicalPlan, batch: SampledBatch): LogicalPlan =
    if (source.key.isEmpty || source.checksKey || source.input == InputMode.Upsert ||
      source.snapshot.nonEmpty) changes
    else
      batch.of(source.number, DescribeNode.key(source.key)).fold(changes) { sample =>
        val hash = new XxHash64(source.key)
        def call(function: String, dataType: DataType, arguments: Expression*) =
          Invoke(
            Literal.fromObject(sample),
            function,
            dataType,
            arguments,
            propagateNull = false,
            returnNullable = false)
        RowKind.find(changes.output) match {
          case Some(kind) =>
            val noted = Alias(call("note", ByteType, kind, hash), RowKind.ColumnName)()
            Project(RowKind.without(Some(kind), changes.output) :+ noted, changes)
          case None => Filter(call("isNoted", BooleanType, hash), changes)
        }
      }

  /**
   * Returns the table at the end of all changes of a batch source.
   *
   * @param number
   *   number of the source in the query, from 1
   */
  def batch(source: FromChangelog, number: Int): LogicalPlan = {
    val (rows, kind) = read(source, number)
    kind match {
      case Some(kind) if !source.produces.isInsertOnly =>
        if (source.input == InputMode.Upsert) newestRows(source, rows, kind)
        else remainingRows(source, rows, kind)
      case _ =>
        NodeRewrite.select(checked(source, rows, Literal(1L)), source.output, withKind = false)
    }
  }

  private def unique(
      source: FromChangelog,
      rows: LogicalPlan,
      kind: Option[Attribute],
      ids: OperatorIds): ChangelogUnique =
    ChangelogUnique(source.key, source.output, kind, keyCheck(source), ids.next(), rows)

  private def keyCheck(source: FromChangelog) =
    KeyCheck(DescribeNode.key(source.key), source.duplicates == Duplicates.Fail)

  /** If the source checks its key, fails or warns for keys with several rows. */
  private def checked(source: FromChangelog, rows: LogicalPlan, count: Expression): LogicalPlan =
    if (!source.checksKey) rows
    else {
      val all = SpecifiedWindowFrame(RowFrame, UnboundedPreceding, UnboundedFollowing)
      val sum = WindowExpression(
        Sum(count).toAggregateExpression(),
        WindowSpecDefinition(source.key, Nil, all))
      val perKey = Alias(sum, "_rows")()
      def text(columns: Seq[Attribute]) = ToPrettyString(CreateStruct(columns), Some("UTC"))
      val noted = Invoke(
        Literal.fromObject(keyCheck(source)),
        "isNoted",
        BooleanType,
        Seq(perKey.toAttribute, text(source.key), text(source.output)),
        returnNullable = false)
      Filter(
        Or(LessThanOrEqual(perKey.toAttribute, Literal(1L)), noted),
        Window(Seq(perKey), source.key, Nil, rows))
    }

  private def normalize(
      source: FromChangelog,
      node: AnnotatedPlan,
      ids: OperatorIds): LogicalPlan = {
    val (rows, kind) = read(source, ids.nextSource())
    val position = arrival(source)
    val feed = UpsertFeed(
      source.key,
      source.sequence,
      position.toAttribute,
      source.output,
      kind.get,
      source.unavailable,
      source.snapshot.nonEmpty)
    ChangelogNormalize(
      feed,
      node.mode.updateKind,
      RowKind.newAttribute(),
      ids.next(),
      Project(rows.output :+ position, rows))
  }

  /** Returns the arrival position of a change. Rows of a snapshot have negative positions. */
  private def arrival(source: FromChangelog): Alias = {
    val place = MonotonicallyIncreasingID()
    val value = source.snapshot.fold[Expression](place) { isSnapshot =>
      Add(place, If(isSnapshot, Literal(Long.MinValue), Literal(0L)))
    }
    Alias(value, "_position")()
  }

  /** Returns the source's columns, sequence and row kind, without skipped rows. */
  private def read(source: FromChangelog, number: Int): (LogicalPlan, Option[Attribute]) = {
    val child = IdleSource.mark(DeadLetters.number(source.child, number))
    val key = AttributeSet(source.key)
    val besides =
      (source.sequence ++ source.unavailable ++ source.snapshot)
        .filterNot(source.outputSet.contains)
    val columns = (source.output ++ besides).map { column =>
      val read =
        if (source.matchesRows && source.outputSet.contains(column)) SparkRules.sameBytes(column)
        else if (key.contains(column)) SparkRules.normalizeFloats(column)
        else column
      read match {
        case same: NamedExpression => same
        case other =>
          Alias(other, column.name)(
            exprId = column.exprId,
            explicitMetadata = Some(column.metadata))
      }
    }
    source.kind match {
      case None => (Project(columns, child), None)
      case Some(expression) =>
        val kind = Alias(expression, RowKind.ColumnName)()
        val rows = Project(columns :+ kind, child)
        val attribute = kind.toAttribute
        val isReadable = GreaterThanOrEqual(attribute, Literal(0.toByte, ByteType))
        val read =
          if (source.skipsBadRows) Filter(isReadable, count(rows, isReadable, number))
          // A bad row must fail even if no operator reads the kind.
          else if (source.produces.isInsertOnly) Filter(isReadable, rows)
          else rows
        (read, Some(attribute))
    }
  }

  /** Counts bad rows in the observed metrics `from_changelog`, `from_changelog_2`, ... */
  private def count(rows: LogicalPlan, isReadable: Expression, number: Int): LogicalPlan = {
    // Observed metrics ignore FILTER.
    val bad = If(isReadable, Literal(null, IntegerType), Literal(1))
    val dropped = Count(bad).toAggregateExpression()
    val name = if (number == 1) "from_changelog" else s"from_changelog_$number"
    CollectMetrics(name, Seq(Alias(dropped, DroppedRowsMetric)()), rows, 0L)
  }

  /** Repeats each distinct row by the difference between its inserts and deletes. */
  private def remainingRows(
      source: FromChangelog,
      rows: LogicalPlan,
      kind: Attribute): LogicalPlan = {
    val count = Alias(Sum(RowKind.signOf(kind)).toAggregateExpression(), "_count")()
    val counted = GroupByMaps(Aggregate(source.output, source.output :+ count, rows))
    val netted = Filter(
      GreaterThan(count.toAttribute, Literal(0L)),
      checked(source, counted, count.toAttribute))
    val copies = source.output.map(_.newInstance())
    val repeated = Generate(
      ReplicateRows(count.toAttribute +: counted.output.filterNot(_.exprId == count.exprId)),
      unrequiredChildIndex = Nil,
      outer = false,
      qualifier = None,
      generatorOutput = copies,
      child = netted)
    Project(
      source.output.zip(copies).map { case (column, copy) =>
        Alias(copy, column.name)(exprId = column.exprId, explicitMetadata = Some(column.metadata))
      },
      repeated)
  }

  /** Returns the newest row of each key, unless the newest change is a delete. */
  private def newestRows(
      source: FromChangelog,
      rows: LogicalPlan,
      kind: Attribute): LogicalPlan = {
    val position = arrival(source)
    val isAfterImage = Not(EqualTo(kind, Literal(RowKind.UpdateBefore)))
    val ties = if (source.sequence.isEmpty) Nil else Seq(isAfterImage)
    val order = CreateStruct(source.sequence ++ ties :+ position.toAttribute)
    val change = CreateStruct(source.output ++ Seq(kind) ++ source.unavailable)
    val newest = Alias(MaxBy(change, order).toAggregateExpression(), "_newest")()
    val stored = source.unavailable.map(new StoredValues(source, _, order)).toSeq
    val ofSnapshot = source.snapshot.map(new SnapshotKeys(_))
    val grouped = Aggregate(
      source.key,
      newest +: (stored.flatMap(_.aggregates) ++ ofSnapshot.map(_.count)),
      Project(rows.output :+ position, rows))
    def key = source.key.map { column =>
      val place = source.output.indexWhere(_.exprId == column.exprId)
      GetStructField(newest.toAttribute, place)
    }
    val perKey = ofSnapshot.fold[LogicalPlan](grouped)(_.check(grouped, key))
    val newestKind = GetStructField(newest.toAttribute, source.output.size)
    Project(
      source.output.zipWithIndex.map { case (column, index) =>
        val sent = GetStructField(newest.toAttribute, index)
        val value = stored.headOption.map(_.complete(column, sent, newest)).getOrElse(sent)
        Alias(value, column.name)(
          exprId = column.exprId,
          explicitMetadata = Some(column.metadata))
      },
      Filter(Not(RowKind.isRetraction(newestKind)), perKey))
  }
}

/** Rejects a snapshot with several rows of one key, like `ChangelogNormalize`. */
private[rewrite] class SnapshotKeys(isSnapshot: Attribute) {

  /** The number of snapshot rows of a key. */
  val count: Alias = {
    val one = If(isSnapshot, Literal(1), Literal(null, IntegerType))
    Alias(Count(one).toAggregateExpression(), "_snapshot_rows")()
  }

  /**
   * @param grouped
   *   rows by key, with the count
   * @param key
   *   the key of a row
   */
  def check(grouped: LogicalPlan, key: Seq[Expression]): LogicalPlan = {
    val text = ToPrettyString(CreateStruct(key), Some("UTC"))
    val fails = StaticInvoke(SnapshotKeys.getClass, BooleanType, "fail", Seq(text))
    Filter(Or(LessThanOrEqual(count.toAttribute, Literal(1L)), fails), grouped)
  }
}

private[changelog] object SnapshotKeys {

  /** Called from generated code. */
  def fail(key: UTF8String): java.lang.Boolean =
    throw runtime(
      "CHANGELOG_SNAPSHOT_KEY_REPEATED",
      "key" -> key.toString.stripPrefix("{").stripSuffix("}"))
}
