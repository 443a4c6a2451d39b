// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions._

/**
 * Functions over all rows of a partition up to each row.
 *
 * @param ofRows
 *   the buffers that see a row before the other rows with its time
 * @param ofPeers
 *   the buffers that see all rows with one time at once
 * @param results
 *   the results for a row, of the row and the buffers
 */
final case class RunningFunctions(
    ofRows: RunningBuffers,
    ofPeers: RunningBuffers,
    results: Seq[NamedExpression])
    extends ParameterGroup {

  /** What is kept of a partition. */
  def buffers: Seq[Attribute] = ofRows.columns ++ ofPeers.columns
}

/**
 * What functions keep of the rows they have seen.
 *
 * @param initial
 *   the value of each buffer before the first row
 * @param updates
 *   the next value of each buffer, of itself and a row
 */
final case class RunningBuffers(
    columns: Seq[Attribute],
    initial: Seq[Expression],
    updates: Seq[Expression])
    extends ParameterGroup
