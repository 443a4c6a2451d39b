// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.execution.metric.SQLMetric

import org.apache.spark.sql.changelog.RowKind

/**
 * Counts what an operator emits and what it does to its state. Changes are counted so that the number
 * of each kind is known, with no more to be done for a change than is needed for that.
 *
 * @param emitted
 *   changes of all kinds
 * @param retracted
 *   those of them that take a row back
 * @param postimages
 *   those of them that are the new row of an update
 * @param deletes
 *   those of them that take a row back for good
 * @param updated
 *   state records written
 * @param removed
 *   state records removed
 */
final case class ChangeMetrics(
    emitted: SQLMetric,
    retracted: SQLMetric,
    postimages: SQLMetric,
    deletes: SQLMetric,
    updated: SQLMetric,
    removed: SQLMetric) {

  /** Counts a change that is emitted. */
  def emit(kind: Byte): Unit = {
    emitted += 1
    if (RowKind.retracts(kind)) {
      retracted += 1
      if (kind == RowKind.Delete) deletes += 1
    } else if (kind == RowKind.UpdateAfter) postimages += 1
  }
}
