// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.identity.OperatorRecord
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.shared.SharedChanges
import org.apache.spark.sql.changelog.sources.StreamRows

/**
 * What is read for each operator in the batch in which a changed query begins.
 *
 * @param plan
 *   the changed query as it was rewritten
 * @param operators
 *   what is written down of its nodes
 */
private[evolution] class FirstBatchReads(
    plan: LogicalPlan,
    operators: Seq[OperatorRecord],
    kept: KeptParts) {
  import FirstBatchReads._

  private val nodes: Seq[LogicalPlan with KeepsState] = plan.collect {
    case operator: KeepsState if !operator.isInstanceOf[ReplayedVersion] => operator
  }
  private val parts: Map[SharedChanges, SharedPart] = plan.collect { case part: SharedPart =>
    part.changes -> part
  }.toMap

  /** The uppermost of a node's operators; others of it lie below. */
  private def uppermost(record: OperatorRecord): Option[LogicalPlan with KeepsState] =
    nodes.find(node => record.ids.contains(node.operatorId))

  private val emitting: Set[Long] =
    operators.filter(kept.emits).flatMap(uppermost).map(_.operatorId).toSet

  def apply(operator: OperatorRecord): Seq[Read] =
    if (kept.contains(operator) && !kept.emits(operator)) Nil
    else uppermost(operator).toSeq.flatMap(in).distinct

  /** What is read for any of them, or for the result. */
  def all: Seq[Read] = in(plan).distinct

  /** The nodes that compute rows in it, of what is read. */
  def computed: Seq[LogicalPlan] = computedIn(plan)

  private def computedIn(plan: LogicalPlan): Seq[LogicalPlan] = plan match {
    case operator: KeepsState if emitting(operator.operatorId) => Nil
    case reading: SharedReading => parts.get(reading.changes).toSeq.flatMap(computedIn)
    case other => other +: (other.children ++ other.subqueries).flatMap(computedIn)
  }

  private def in(plan: LogicalPlan): Seq[Read] = plan match {
    // what gives these is another child of the same node
    case _: ReplayedVersion => Nil
    case operator: KeepsState if emitting(operator.operatorId) =>
      Seq(Read.OfState(operator.operatorId))
    case reading: SharedReading => parts.get(reading.changes).toSeq.flatMap(in)
    case leaf if leaf.children.isEmpty =>
      Seq(if (StreamRows.isStream(leaf)) Read.OfStream(leaf) else Read.OfTable(leaf))
    case other => other.children.flatMap(in)
  }
}

private[evolution] object FirstBatchReads {
  sealed trait Read

  object Read {

    /** All that an operator keeps. */
    case class OfState(operator: Long) extends Read

    /** A stream, from its beginning. */
    case class OfStream(stream: LogicalPlan) extends Read

    /** Rows that are no stream's. */
    case class OfTable(rows: LogicalPlan) extends Read
  }
}
