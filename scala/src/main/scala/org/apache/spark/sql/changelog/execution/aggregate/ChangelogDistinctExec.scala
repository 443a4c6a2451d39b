// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.util.{UnsafeRowUtils, truncatedString}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.{IntegerType, LongType, StructType}

import org.apache.spark.sql.changelog.execution.expiry.EntryTimes
import org.apache.spark.sql.changelog.execution.{StateColumns, UnaryChangelogStateWriter}
import org.apache.spark.sql.changelog.identity.EntryPlacement

/**
 * Emits a row when a group gets a new distinct value or loses the last copy of a value.
 *
 *   - in: one row per group of the batch, and one row per changed value of a group with the number of inserts
 *     minus retractions (see [[PlanChangelogAggregate]])
 *   - out: the rows of groups unchanged, and a row of the group for each value that appears (sign +1) or
 *     disappears (sign -1). An uncombined change gives at most one row, with its new values
 *   - state: the number of rows per group and value: `group, value -> count`. The count is signed, and a value
 *     exists if its count is positive. Over insert-only input: `group, value -> bits`, one bit per kind of
 *     value, and kinds that differ only in their FILTER share an entry
 *
 * An aggregate over `out` is then an ordinary aggregate over distinct values. Values are independent of each
 * other, so the rows of a group may be spread over partitions.
 *
 * @param layout
 *   the columns of values
 * @param areCombined
 *   whether `in` has the form above. If not, `in` is insert-only, with one row per change and all the change's
 *   values. If values are spread, `in` has one row per value, and the first of a change's rows is also the
 *   group's
 * @param placedBy
 *   the columns that distribute rows: the group's, or also the value's
 */
case class ChangelogDistinctExec(
    layout: DistinctLayout,
    placedBy: Seq[Attribute],
    areCombined: Boolean,
    stateInfo: Option[StatefulOperatorStateInfo],
    child: SparkPlan)
    extends UnaryChangelogStateWriter {

  override def shortName: String = "changelogDistinct"

  override def simpleString(maxFields: Int): String = {
    val keys = truncatedString(layout.grouping, "[", ", ", "]", maxFields)
    val values = truncatedString(layout.values, "[", ", ", "]", maxFields)
    s"$nodeName(keys=$keys, values=$values)"
  }

  override def output: Seq[Attribute] = layout.output

  override def producedAttributes: AttributeSet = AttributeSet(Seq(layout.newTable, layout.sign))

  /** A value's row becomes a row of its group, so only a distribution by group is preserved. */
  override def outputPartitioning: Partitioning =
    if (placedBy == layout.grouping) child.outputPartitioning
    else UnknownPartitioning(child.outputPartitioning.numPartitions)

  override def timedColumns: Seq[Attribute] = layout.grouping

  override def stateKeySchema: StructType = layout.keySchema

  /** The column's name differs by distribution, so that the state schema check notices a changed distribution. */
  override def stateValueSchema: StructType = {
    val name = if (placedBy == layout.grouping) "count" else "count of split values"
    StateColumns(Seq(name -> LongType))
  }

  override def placement: EntryPlacement =
    if (placedBy == layout.grouping) layout.placedByGroup else layout.placedByValue

  override protected def doExecute(): RDD[InternalRow] = {
    ValueCombining.note(getStateInfo, child, worth = 1)
    super.doExecute()
  }

  override protected def entryTimes: Option[EntryTimes] = timesOfKey(layout.keyColumns)

  override protected def isNoOpWithoutInput: Boolean = eventTimeBound.isEmpty

  override protected def processPartition(
      store: StateStore,
      rows: Iterator[InternalRow]): Iterator[InternalRow] = {
    val values =
      if (areCombined) new CombinedValues(layout, child.output, store, unmatchedRetractions())
      else new SingleValues(layout, child.output, store, forgets = ttls.exists(_ > 0))
    val numOutputRows = longMetric("numOutputRows")
    val numUpdatedStateRows = longMetric("numUpdatedStateRows")
    val numRemovedStateRows = longMetric("numRemovedStateRows")
    val changes = withoutLate(rows, child.output)
      .map { row =>
        val changed = values.change(row)
        numUpdatedStateRows += values.numWritten
        numRemovedStateRows += values.numRemoved
        if (changed != null) numOutputRows += 1
        changed
      }
      .filter(_ != null)
    changes ++ {
      removeExpired(store)
      Iterator.empty
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogDistinctExec =
    copy(child = newChild)
}

/**
 * The columns of rows of groups and values, before and after [[ChangelogDistinctExec]].
 *
 * @param grouping
 *   the group columns
 * @param table
 *   the number of the table of the row's value, 0 for a group's own row
 * @param newTable
 *   the table after the operator, where rows of distinct values are rows of their group
 * @param others
 *   columns of values counted by another operator; their tables come first
 * @param values
 *   one column per kind of distinct values, NULL in rows of other tables
 * @param shared
 *   for each kind of values, the first kind with the same entries; its own number if its entries are not shared
 * @param count
 *   the number of inserts with the value minus retractions; empty over insert-only input
 * @param sign
 *   +1 for a value that appears, -1 for a value that disappears
 * @param buffers
 *   the group's combined buffers, with their values over empty input
 */
final case class DistinctLayout(
    grouping: Seq[Attribute],
    table: Attribute,
    newTable: Attribute,
    others: Seq[Attribute],
    values: Seq[Attribute],
    shared: Seq[Int],
    count: Option[Attribute],
    sign: Attribute,
    buffers: Seq[(Attribute, Expression)]) {

  /** The number of the first table of distinct values. */
  val firstTable: Int = 1 + others.size

  def output: Seq[Attribute] =
    (grouping :+ newTable) ++ (others ++ values) ++ (sign +: buffers.map(_._1))

  /** The bit of each kind of values in a shared entry. */
  val bits: Seq[Long] =
    shared.indices.map(kind => 1L << shared.take(kind).count(_ == shared(kind)))

  /** Whether the key of an entry needs the table's number. */
  private def needsTableNumber: Boolean = shared.distinct.size > 1

  /**
   * The key of an entry, in which equal values have equal bytes. The table's number separates kinds of values.
   * Kinds of the same type share a column.
   */
  val key: Seq[NamedExpression] =
    (if (needsTableNumber) Seq(tableOfEntry) else Nil) ++ grouping ++
      values.map(_.dataType.asNullable).distinct.map { dataType =>
        val column = values.filter(_.dataType.asNullable == dataType) match {
          case Seq(value) => value
          case several => Alias(Coalesce(several), "value")()
        }
        if (UnsafeRowUtils.isBinaryStable(dataType)) column
        else Alias(CollationKey.injectCollationKey(column), column.name)()
      }

  def keyColumns: Seq[Attribute] = key.map(_.toAttribute)

  def keySchema: StructType = StateColumns.ofKey(keyColumns)

  private def firstOfGroup: Int = if (needsTableNumber) 1 else 0

  /** The placement of entries for rows shuffled by group. */
  def placedByGroup: EntryPlacement = EntryPlacement.byColumns(grouping, firstOfGroup)

  /**
   * The placement of entries for rows shuffled by group, table and all values. A hash skips NULL, so the hash
   * of the entry's own value is enough. Kinds that share entries keep separate tables in the shuffle.
   */
  def placedByValue: EntryPlacement =
    if (!values.forall(value => UnsafeRowUtils.isBinaryStable(value.dataType))) {
      EntryPlacement.unknown("the state has only the comparison form of the DISTINCT values")
    } else {
      val group = placedByGroup.by
      val table =
        if (needsTableNumber) BoundReference(0, IntegerType, nullable = true)
        else Literal(firstTable)
      val first = firstOfGroup + grouping.size
      val ofValues = key.drop(first).zipWithIndex.map { case (value, index) =>
        BoundReference(first + index, value.dataType, nullable = true)
      }
      val sharing =
        shared.distinct.map(first =>
          shared.indices.filter(shared(_) == first).map(firstTable + _))
      val form =
        if (sharing.forall(_.size == 1)) EntryPlacement.Single
        else EntryPlacement.OfKinds(group.size, sharing)
      EntryPlacement((group :+ table) ++ ofValues, form)
    }

  private def tableOfEntry: NamedExpression = {
    val others = shared.indices.filter(kind => shared(kind) != kind)
    if (others.isEmpty) table
    else {
      val branches = others.map { kind =>
        (EqualTo(table, Literal(firstTable + kind)), Literal(firstTable + shared(kind)))
      }
      Alias(CaseWhen(branches, table), table.name)()
    }
  }

  /** Returns a value's row as a row of its group, with a sign and buffers over empty input. */
  def asGroup(sign: Long): Seq[Expression] =
    (grouping :+ Literal(0)) ++ (others ++ values) ++ (Literal(sign) +: buffers.map(_._2))

  /** Returns the columns of a row that passes unchanged. */
  def unchanged: Seq[Expression] =
    (grouping :+ table) ++ (others ++ values) ++ (Literal(1L) +: buffers.map(_._1))
}

private[aggregate] object DistinctLayout {

  /** The number of kinds of values that can share an entry: the bits of a long. */
  val MaxShared: Int = 64
}
