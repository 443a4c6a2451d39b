// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.{ChangelogMode, UpdateKind}

/**
 * One table kept in an operator's state store, as EXPLAIN shows it.
 *
 * @param table
 *   what it is called, such as `groups` or `left rows`
 * @param key
 *   the columns it is looked up by
 * @param value
 *   what is kept per key
 * @param boundedBy
 *   what keeps it from growing for ever, such as `a watermark on ts`, or `unbounded`
 */
final case class StateTable(table: String, key: Seq[String], value: String, boundedBy: String) {
  override def toString: String = s"$table: ${key.mkString("(", ", ", ")")} → $value, $boundedBy"
}

object StateTable {

  /**
   * What bounds a table that no watermark does: nothing, unless there is a TTL.
   *
   * @param ttl
   *   in ms, 0 for none
   */
  def unbounded(ttl: Long): String = if (ttl == 0) "unbounded" else forgotten(ttl)

  /** What bounds a table that `bound` does too. */
  def boundedBy(bound: String, ttl: Long): String =
    if (ttl == 0) bound else s"$bound, ${forgotten(ttl)}"

  private def forgotten(ttl: Long): String =
    s"forgotten ${Utils.msDurationToString(ttl)} after its last change"
}

/**
 * One of the places where a part is read that is computed once.
 *
 * @param number
 *   counts the parts of a query, from 1
 * @param readers
 *   how many places there are
 * @param computes
 *   whether this is the place where it is computed
 */
final case class PartReading(number: Int, readers: Int, computes: Boolean) {
  override def toString: String =
    if (computes) s"part $number: computed once for its $readers readers"
    else s"part $number: read again, not computed again"
}

/**
 * What inference found out about one node of a query below `to_changelog`.
 *
 * @param plan
 *   the node, unchanged
 * @param mode
 *   the row kinds it sends to its consumer
 * @param required
 *   how the consumer wants updates to be sent
 * @param requiredKey
 *   the key by which the consumer replaces rows, if it wants updates without before images: rows
 *   are the same row of the consumer exactly when they agree on it
 * @param upsertKeys
 *   every known set of output columns that identifies a row; the empty set means at most one row
 * @param strategy
 *   how the node will be executed, where there is a choice
 * @param state
 *   the tables it keeps
 * @param reasons
 *   sentences that say why the mode and the strategy are what they are
 * @param shared
 *   which of the parts it is that are computed once and read several times
 */
final case class AnnotatedPlan(
    plan: LogicalPlan,
    mode: ChangelogMode,
    required: UpdateKind,
    requiredKey: Option[AttributeSet],
    upsertKeys: Seq[AttributeSet],
    strategy: Option[String],
    state: Seq[StateTable],
    reasons: Seq[String],
    children: Seq[AnnotatedPlan],
    shared: Option[PartReading] = None) {

  /** Visits this node and all below it, inputs first. */
  def foreachUp(visit: AnnotatedPlan => Unit): Unit = {
    children.foreach(_.foreachUp(visit))
    visit(this)
  }
}
