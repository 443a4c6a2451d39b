// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.normalize

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.{BooleanType, StructType}

import org.apache.spark.sql.changelog.execution._
import org.apache.spark.sql.changelog.plans.UpsertFeed
import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/**
 * Restores the before images of an upsert feed, which sends only the newest row per key.
 *
 *   - in: `+I` or `+U` with the newest row of a key; `-D` or `-U`, of which only the key matters
 *   - out: `+I` for a new key, `-U +U` for a changed row, `-D` with the full row
 *   - state: the newest row per key; see [[NormalizeLayout]]. With a sequence, also the sequence. A delete
 *     leaves the sequence in state, so that a change that arrives after the delete is still recognized as older
 *   - law: per key, the row with the highest sequence is the row in the table
 *
 * Changes of a key are ordered by sequence, then by arrival. With an equal sequence, an update's before image
 * is older, whatever the arrival order. A row identical to the stored row emits nothing. A value that an update
 * does not send, because the value has not changed, is taken from the previous row.
 */
case class ChangelogNormalizeExec(
    layout: NormalizeLayout,
    updateKind: UpdateKind,
    outputKind: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    child: SparkPlan)
    extends UnaryChangelogStateWriter {
  import layout.feed.{columns, key, sequence}

  override def shortName: String = "changelogNormalize"

  override def simpleString(maxFields: Int): String = {
    val keys = truncatedString(key, "[", ", ", "]", maxFields)
    val order = truncatedString(sequence, "[", ", ", "]", maxFields)
    s"$nodeName(key=$keys, sequence=$order, updates=$updateKind)"
  }

  override def output: Seq[Attribute] = columns :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  override def placedBy: Seq[Attribute] = key

  override def requiredChildOrdering: Seq[Seq[SortOrder]] = {
    // unsent values are taken from the previous change
    if (layout.inOrder) Seq(key.map(SortOrder(_, Ascending)) ++ layout.age)
    else Seq(RowsByKey.order(key))
  }

  override def outputOrdering: Seq[SortOrder] = {
    val order = requiredChildOrdering.head.take(key.size)
    if (order.forall(part => columns.exists(_.semanticEquals(part.child)))) order else Nil
  }

  override def stateKeySchema: StructType = layout.keySchema

  override def stateValueSchema: StructType = layout.valueSchema

  override protected def counters: Seq[(String, String)] =
    super.counters :+ "numOutdatedChanges" -> "number of changes older than the row of their key"

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
 * The state columns of the newest row per key, and the order of a key's changes.
 *
 * {{{
 *   key    key columns          value  row, sequence, whether it is deleted
 * }}}
 */
final case class NormalizeLayout(feed: UpsertFeed) {
  import feed._

  def keySchema: StructType = StateColumns(key.map(column => column.name -> column.dataType))

  def valueSchema: StructType = {
    val row = columns.map(column => column.name -> column.dataType)
    val order = sequence.map(column => s"sequence.${column.name}" -> column.dataType)
    StateColumns(row ++ order :+ ("deleted" -> BooleanType))
  }

  /** The columns of a state value. The columns of the row come first. */
  def stored: Seq[Attribute] = toAttributes(valueSchema)

  /** Returns a projection from a state value to its row, as an insert. */
  def storedRow: UnsafeProjection = {
    val all = stored
    UnsafeProjection.create(all.take(columns.size) :+ Literal(RowKind.Insert), all)
  }

  /** Whether the input must be sorted by age, because finding the newest change is not enough. */
  def inOrder: Boolean = unavailable.nonEmpty || hasSnapshot

  /** The order of a key's changes, the oldest first. */
  def age: Seq[SortOrder] = {
    val isBeforeImage = EqualTo(kind, Literal(RowKind.UpdateBefore))
    val ties = if (sequence.isEmpty) Nil else Seq(SortOrder(isBeforeImage, Descending))
    sequence.map(SortOrder(_, Ascending)) ++ ties :+ SortOrder(position, Ascending)
  }
}
