// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.shared

import org.apache.spark.SparkException
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter

/**
 * What the places of a plan know each other by that read the same part. Only itself is equal to it.
 *
 * @param number
 *   counts the shared parts of a query, as people see them
 */
final class SharedChanges(val number: Int) extends Serializable {
  @transient @volatile private var part: Option[SharedPartExec] = None

  /** Says where the part is computed: Spark prepares all of a plan before it executes any of it. */
  def computedBy(part: SharedPartExec): Unit = this.part = Some(part)

  /** The part's changes, the same shuffled rows for every reader. */
  def rows: RDD[InternalRow] = plan.execute()

  /** The operators the changes come from, those of further shared parts among them. */
  def operatorIds: Seq[Long] = part.toSeq.flatMap { part =>
    val own = part.collect { case writer: StateStoreWriter => writer.getStateInfo.operatorId }
    own ++ part.collect { case reading: SharedReadingExec => reading.changes.operatorIds }.flatten
  }

  private def plan: SharedPartExec = part.getOrElse(
    throw SparkException.internalError(s"The shared part $number is read, but not computed"))

  override def toString: String = s"part $number"
}
