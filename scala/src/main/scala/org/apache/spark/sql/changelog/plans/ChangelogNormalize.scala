// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.UpdateKind
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime

/**
 * Restores the before images of a feed that sends only the newest row per key.
 *
 * @param updateKind
 *   whether the consumer wants before images
 */
case class ChangelogNormalize(
    feed: UpsertFeed,
    updateKind: UpdateKind,
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan)
    extends UnaryNode
    with KeepsState {

  override def output: Seq[Attribute] = feed.columns :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogNormalize =
    copy(child = newChild)
}

/**
 * The columns of an upsert feed.
 *
 * @param key
 *   the columns that identify a row
 * @param sequence
 *   columns that order the changes of a key; empty for arrival order
 * @param position
 *   the arrival order within the batch, which breaks ties of the sequence
 * @param columns
 *   the columns of the table
 * @param kind
 *   the row kind of a change
 * @param unavailable
 *   the names of columns whose values a change did not send; NULL if it sent every column
 * @param hasSnapshot
 *   whether snapshot rows precede all changes, with positions below 0
 */
final case class UpsertFeed(
    key: Seq[Attribute],
    sequence: Seq[Attribute],
    position: Attribute,
    columns: Seq[Attribute],
    kind: Attribute,
    unavailable: Option[Attribute] = None,
    hasSnapshot: Boolean = false)
    extends ParameterGroup

/**
 * Counts the rows of each key, and passes all changes.
 *
 * @param key
 *   the declared key columns
 * @param columns
 *   the columns of the table
 * @param kind
 *   the row kind of `child`, or None if every row is an insert
 * @param check
 *   the reaction to a key with several rows
 */
case class ChangelogUnique(
    key: Seq[Attribute],
    columns: Seq[Attribute],
    kind: Option[Attribute],
    check: KeyCheck,
    operatorId: Long,
    child: LogicalPlan)
    extends UnaryNode
    with KeepsState {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogUnique =
    copy(child = newChild)
}

/**
 * Fails for a second row of a key, or logs a warning.
 *
 * @param key
 *   the columns of the key, as text
 * @param fails
 *   whether the check fails
 */
case class KeyCheck(key: String, fails: Boolean) extends Logging {

  /**
   * Reports a key with several rows.
   *
   * @param values
   *   the key's values
   * @param row
   *   one of the key's rows
   * @param reader
   *   the reader of the source, warned once per process
   */
  def duplicate(rows: Long, values: String, row: String, reader: String): Unit =
    if (fails)
      throw runtime(
        "CHANGELOG_KEY_DUPLICATE",
        "columns" -> key,
        "key" -> values,
        "row" -> row,
        "rows" -> rows)
    else if (KeyCheck.warned.add(s"$reader $key")) {
      // Row values do not belong in a log.
      logWarning(
        s"A source has several rows with an equal key $key, and each row counts. $reader gets no " +
          "further warning.")
    }

  /** Reports a duplicate, in an expression of a batch query. */
  def isNoted(rows: Long, values: UTF8String, row: UTF8String): Boolean = {
    duplicate(rows, values.toString, row.toString, "A batch query")
    true
  }
}

object KeyCheck {
  private val warned = ConcurrentHashMap.newKeySet[String]()
}
