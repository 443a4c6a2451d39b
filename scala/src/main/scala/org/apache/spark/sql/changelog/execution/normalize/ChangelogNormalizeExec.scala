// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.normalize

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  StatefulOperatorCustomMetric,
  StatefulOperatorCustomSumMetric,
  StatefulOperatorStateInfo
}
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.{BooleanType, StructType}

import org.apache.spark.sql.changelog.execution._
import org.apache.spark.sql.changelog.identity.EntryPlacement
import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/**
 * Restores the before images of a feed that sends only the newest row per key.
 *
 *   - in: `+I` or `+U` with the newest row of a key; `-D` or `-U` whose key alone matters
 *   - out: `+I` for a new key, `-U +U` when its row changes, `-D` with the full row
 *   - state: the newest row per key; see [[NormalizeLayout]]. With a sequence also the sequence, and
 *     after a delete the sequence alone, so that a change that comes late is still known to be older
 *   - law: per key, the row with the highest sequence is the one in the table
 *
 * Several changes of one key are settled by sequence, then by arrival; of two changes with equal
 * sequence an update's before image counts as the older one, in whatever order they come. A row
 * identical to the one stored emits nothing. A value that an update does not send, for it did not
 * change, is taken from the row before.
 */
case class ChangelogNormalizeExec(
    layout: NormalizeLayout,
    updateKind: UpdateKind,
    outputKind: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    child: SparkPlan)
    extends UnaryChangelogStateWriter {
  import layout.{columns, key, sequence}

  override def shortName: String = "changelogNormalize"

  override def simpleString(maxFields: Int): String = {
    val keys = truncatedString(key, "[", ", ", "]", maxFields)
    val order = truncatedString(sequence, "[", ", ", "]", maxFields)
    s"$nodeName(key=$keys, sequence=$order, updates=$updateKind)"
  }

  override def output: Seq[Attribute] = columns :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def requiredChildDistribution: Seq[Distribution] =
    Seq(clusteredBy(key))

  override def requiredChildOrdering: Seq[Seq[SortOrder]] = {
    // values that were not sent are taken from the change before
    if (layout.inOrder) Seq(key.map(SortOrder(_, Ascending)) ++ layout.age)
    else Seq(RowsByKey.order(key))
  }

  override def outputOrdering: Seq[SortOrder] = {
    val order = requiredChildOrdering.head.take(key.size)
    if (order.forall(part => columns.exists(_.semanticEquals(part.child)))) order else Nil
  }

  override def stateKeySchema: StructType = layout.keySchema

  override def stateValueSchema: StructType = layout.valueSchema

  override def placement: EntryPlacement = EntryPlacement.byColumns(key, first = 0)

  override protected def customStatefulOperatorMetrics: Seq[StatefulOperatorCustomMetric] =
    super.customStatefulOperatorMetrics :+ StatefulOperatorCustomSumMetric(
      "numOutdatedChanges",
      "number of changes older than the row of their key")

  override protected def isNoOpWithoutInput: Boolean = true

  override protected def processPartition(
      store: StateStore,
      rows: Iterator[InternalRow]): Iterator[InternalRow] =
    new DifferenceIterator(
      output.size - 1,
      updateKind == UpdateKind.BeforeAndAfter,
      changeMetrics) {
      private val keys = RowsByKey(rows, key, child.output)
      private val processor =
        new ChangelogNormalizeProcessor(layout, child.output, store, unmatchedRetractions())
      private val metrics = changeMetrics
      private val outdated = longMetric("numOutdatedChanges")

      override protected def nextKey(): Boolean = keys.hasNext && {
        val (_, changes) = keys.next()
        processor.process(changes)
        outdated += processor.outdated
        if (processor.removed) metrics.removed += 1 else metrics.updated += 1
        true
      }

      override protected def before: UnsafeRow = processor.before

      override protected def after: UnsafeRow = processor.after
    }

  override protected def storedResult(store: StateStore): Iterator[InternalRow] = {
    val rowOf = layout.storedRow
    val deletedOrdinal = layout.valueSchema.size - 1
    store.iterator().filterNot(_.value.getBoolean(deletedOrdinal)).map(kept => rowOf(kept.value))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogNormalizeExec =
    copy(child = newChild)
}

/**
 * Says in which columns the newest row of each key is kept, and which change of a key is the newest.
 *
 * {{{
 *   key    key columns          value  row, sequence, whether it is deleted
 * }}}
 *
 * @param key
 *   the columns that identify a row
 * @param sequence
 *   columns that order the changes of one key; empty for arrival order
 * @param position
 *   the arrival order within the batch, which settles equal sequences
 * @param columns
 *   the columns of the table
 * @param kind
 *   the row kind of a change
 * @param unavailable
 *   the names of columns whose values a change did not send; NULL for none
 * @param hasSnapshot
 *   whether rows of a snapshot come before all changes, with positions below 0
 */
final case class NormalizeLayout(
    key: Seq[Attribute],
    sequence: Seq[Attribute],
    position: Attribute,
    columns: Seq[Attribute],
    kind: Attribute,
    unavailable: Option[Attribute],
    hasSnapshot: Boolean = false) {

  def keySchema: StructType = StateColumns(key.map(column => column.name -> column.dataType))

  def valueSchema: StructType = {
    val row = columns.map(column => column.name -> column.dataType)
    val order = sequence.map(column => s"sequence.${column.name}" -> column.dataType)
    StateColumns(row ++ order :+ ("deleted" -> BooleanType))
  }

  /** The columns of a value, of which those of the row come first. */
  def stored: Seq[Attribute] = toAttributes(valueSchema)

  /** The row of a value, as an insert. */
  def storedRow: UnsafeProjection = {
    val all = stored
    UnsafeProjection.create(all.take(columns.size) :+ Literal(RowKind.Insert), all)
  }

  /** Whether the changes of a key have to come in their order, and not only the newest be found. */
  def inOrder: Boolean = unavailable.nonEmpty || hasSnapshot

  /** The order of a key's changes, the oldest first. */
  def age: Seq[SortOrder] = {
    val isBeforeImage = EqualTo(kind, Literal(RowKind.UpdateBefore))
    val ties = if (sequence.isEmpty) Nil else Seq(SortOrder(isBeforeImage, Descending))
    sequence.map(SortOrder(_, Ascending)) ++ ties :+ SortOrder(position, Ascending)
  }
}
