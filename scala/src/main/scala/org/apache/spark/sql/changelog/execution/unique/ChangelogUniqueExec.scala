// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.unique

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.{LongType, StructType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution._
import org.apache.spark.sql.changelog.plans.KeyCheck

/**
 * Finds keys with several rows at the end of a batch, although the key is declared unique.
 *
 *   - in: any changes
 *   - out: the input, whatever is found
 *   - state: the number of rows per key, except 0
 *
 * Changes are signed. Within a batch, a row may therefore arrive before the retraction of the row that it
 * replaces, or be retracted before it arrives.
 */
case class ChangelogUniqueExec(
    key: Seq[Attribute],
    columns: Seq[Attribute],
    kind: Option[Attribute],
    check: KeyCheck,
    stateInfo: Option[StatefulOperatorStateInfo],
    child: SparkPlan)
    extends UnaryChangelogStateWriter {

  override def shortName: String = "changelogUnique"

  override def simpleString(maxFields: Int): String =
    s"$nodeName(key=${truncatedString(key, "[", ", ", "]", maxFields)}, fails=${check.fails})"

  override def output: Seq[Attribute] = child.output

  override def placedBy: Seq[Attribute] = key

  override def requiredChildOrdering: Seq[Seq[SortOrder]] = Seq(RowsByKey.order(key))

  override def stateKeySchema: StructType =
    StateColumns(key.map(column => column.name -> column.dataType))

  override def stateValueSchema: StructType = StateColumns(Seq("rows" -> LongType))

  override protected def counters: Seq[(String, String)] =
    super.counters :+ ChangelogUniqueExec.DuplicatesMetric -> "number of further rows of a key"

  override protected def isNoOpWithoutInput: Boolean = true

  override protected def processPartition(
      store: StateStore,
      rows: Iterator[InternalRow]): Iterator[InternalRow] = {
    val keys = new KeyCounts(store)
    RowsByKey(rows, key, child.output).flatMap { case (_, changes) => keys.counting(changes) }
  }

  /** Counts the rows of each key. */
  private final class KeyCounts(store: StateStore) {
    private val keyOf = UnsafeProjection.create(key, child.output)
    private val valueOf =
      UnsafeProjection.create(Seq(BoundReference(0, LongType, nullable = false)))
    private val textOf = UnsafeProjection.create(
      Seq(key, columns).map(part => ToPrettyString(CreateStruct(part), Some("UTC"))),
      child.output)
    private val kindOrdinal = RowKind.ordinal(kind, child.output)
    private val metrics = changeMetrics
    private val numDuplicates = longMetric(ChangelogUniqueExec.DuplicatesMetric)
    private val reader = s"Operator ${getStateInfo.operatorId} of run ${getStateInfo.queryRunId}"

    private var stateKey: UnsafeRow = _
    private var before = 0L
    private var after = 0L
    // the last inserted row of a key that already had a row
    private var second: InternalRow = _

    /** Returns the changes of a key and counts them on the way. */
    def counting(changes: Iterator[InternalRow]): Iterator[InternalRow] = {
      stateKey = null
      second = null
      new Iterator[InternalRow] {
        private var isOpen = true

        override def hasNext: Boolean = {
          val more = changes.hasNext
          if (!more && isOpen) {
            isOpen = false
            finish()
          }
          more
        }

        override def next(): InternalRow = {
          val change = changes.next()
          if (stateKey == null) begin(change)
          note(change)
          change
        }
      }
    }

    private def begin(change: InternalRow): Unit = {
      stateKey = keyOf(change).copy()
      val stored = store.get(stateKey)
      before = if (stored == null) 0L else stored.getLong(0)
      after = before
    }

    private def note(change: InternalRow): Unit = {
      val kind = RowKind.at(change, kindOrdinal)
      metrics.emit(kind)
      val sign = RowKind.sign(kind)
      after += sign
      if (after > 1 && sign > 0) second = change.copy()
    }

    private def finish(): Unit = {
      val more = math.max(0, after - 1) - math.max(0, before - 1)
      if (more > 0) {
        numDuplicates += more
        val texts = textOf(second)
        check.duplicate(after, texts.getString(0), texts.getString(1), reader)
      }
      if (after == 0) {
        if (before != 0) {
          store.remove(stateKey)
          metrics.removed += 1
        }
      } else if (after != before) {
        store.put(stateKey, valueOf(InternalRow(after)))
        metrics.updated += 1
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogUniqueExec =
    copy(child = newChild)
}

object ChangelogUniqueExec {
  val DuplicatesMetric = "numDuplicateRows"
}
