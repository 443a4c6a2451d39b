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
 * Tells when a group gets a value it did not have, and when it loses the last of one.
 *
 *   - in: one row per group of the batch, and one per changed value of a group with the number of
 *     rows that came less those that went (see [[PlanChangelogAggregate]])
 *   - out: the rows of groups as they are; of the values' rows those whose value appears, with a
 *     sign of +1, or disappears, with -1, as rows of the group. One row per change comes out with
 *     those of its values that appear
 *   - state: how often each group has each value: `group, value -> count`. It is signed, and a value
 *     is there if its count is positive. Over insert-only input `group, value ->` of which kinds it
 *     is there, a bit each: kinds that differ in their FILTER alone share an entry
 *
 * Whatever is computed over `out` is then an ordinary aggregate over the values that are there. As
 * values are independent of each other, the rows of one group may be spread over partitions.
 *
 * @param layout
 *   the columns of values
 * @param areCombined
 *   whether `in` is as said; if not it is one row per change, with all its values, which only
 *   come, or where these are spread one per value, the first of which is also the group's
 * @param clustering
 *   the columns rows are distributed by: the group's, or also the value's
 */
case class ChangelogDistinctExec(
    layout: DistinctLayout,
    clustering: Seq[Attribute],
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

  /** A value's row moves to its group's, so that only a distribution by group is kept. */
  override def outputPartitioning: Partitioning =
    if (clustering == layout.grouping) child.outputPartitioning
    else UnknownPartitioning(child.outputPartitioning.numPartitions)

  override def requiredChildDistribution: Seq[Distribution] =
    Seq(clusteredBy(clustering))

  override def timedColumns: Seq[Attribute] = layout.grouping

  override def stateKeySchema: StructType = layout.keySchema

  /** The column's name tells the two distributions apart, so that one isn't read as the other. */
  override def stateValueSchema: StructType = {
    val name = if (clustering == layout.grouping) "count" else "count of split values"
    StateColumns(Seq(name -> LongType))
  }

  override def placement: EntryPlacement =
    if (clustering == layout.grouping) layout.placedByGroup else layout.placedByValue

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
      removeOver(store)
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
 *   whose values a row holds, 0 for a group's own row
 * @param newTable
 *   the same afterwards, when rows of distinct values are rows of their group
 * @param others
 *   columns of values that are counted elsewhere; their tables come first
 * @param values
 *   one column per kind of distinct values, NULL in rows of others
 * @param shared
 *   for each kind of values the first one whose entries it shares, its own number if there is none
 * @param count
 *   how many rows with the value came less those that went; none if no row ever goes
 * @param sign
 *   +1 where a value appears, -1 where one disappears
 * @param buffers
 *   the group's combined buffers, with their values over no input
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

  /** The bit by which a kind is told from those it shares entries with. */
  val bits: Seq[Long] =
    shared.indices.map(kind => 1L << shared.take(kind).count(_ == shared(kind)))

  /** Whether entries of several tables have to be told apart. */
  private def tellsTables: Boolean = shared.distinct.size > 1

  /**
   * What an entry is found by, where equal values have equal bytes. Kinds of values are told apart
   * by their table, and those of one type have a column together.
   */
  val key: Seq[NamedExpression] =
    (if (tellsTables) Seq(tableOfEntry) else Nil) ++ grouping ++
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

  private def firstOfGroup: Int = if (tellsTables) 1 else 0

  /** Where entries are whose rows are shuffled by their group. */
  def placedByGroup: EntryPlacement = EntryPlacement.byColumns(grouping, firstOfGroup)

  /**
   * Where entries are whose rows are shuffled by group, table and all values. A hash passes over values
   * that are NULL, so that of the entry's own is enough. Kinds that share entries have tables of their own.
   */
  def placedByValue: EntryPlacement =
    if (!values.forall(value => UnsafeRowUtils.isBinaryStable(value.dataType))) {
      EntryPlacement.unknown("of its DISTINCT values only what they are compared by is kept")
    } else {
      val group = placedByGroup.by
      val table =
        if (tellsTables) BoundReference(0, IntegerType, nullable = true) else Literal(firstTable)
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

  /** A value's row as the group's, with a sign and buffers that add nothing. */
  def asGroup(sign: Long): Seq[Expression] =
    (grouping :+ Literal(0)) ++ (others ++ values) ++ (Literal(sign) +: buffers.map(_._2))

  /** Any other row, which stays as it is. */
  def asItIs: Seq[Expression] =
    (grouping :+ table) ++ (others ++ values) ++ (Literal(1L) +: buffers.map(_._1))
}

private[aggregate] object DistinctLayout {

  /** So many kinds of values can share entries. */
  val MostShared: Int = 64
}
