// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.shared

import org.apache.spark.SparkException
import org.apache.spark.sql.execution.SparkPlan

/**
 * What the places of a plan know each other by that read the same part. Only itself is equal to it.
 *
 * @param number
 *   counts the shared parts of a query, as people see them
 */
final class SharedChanges(val number: Int) extends Serializable {
  @transient @volatile private var computed: Option[SparkPlan] = None

  /** Says where the part is computed: Spark prepares all of a plan before it executes any of it. */
  def computedBy(part: SparkPlan): Unit = computed = Some(part)

  /** Where the part is computed, whose shuffled rows are the same for every reader. */
  def part: SparkPlan = computed.getOrElse(
    throw SparkException.internalError(s"The shared part $number is read, but not computed"))

  override def toString: String = s"part $number"
}
