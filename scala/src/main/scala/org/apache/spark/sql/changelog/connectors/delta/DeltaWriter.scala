// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import org.apache.spark.sql.classic.{DataFrame, SparkSession}

/** Writes batches of changes into a Delta table without `MERGE`. */
private[changelog] trait DeltaWriter {

  /**
   * Writes a batch in one commit, unless the table has it; false, with nothing written, if it concerns too many rows.
   *
   * @param changes
   *   the columns of the table and, last, a count: by a key positive for the row that it has, and negative if it has
   *   none; else how many equal rows come, or go if negative
   */
  def write(changes: DataFrame, batch: Long): Boolean
}

private[changelog] object DeltaWriter {

  /**
   * A writer for a table; none if it is not a table that can be written so.
   *
   * @param application
   *   the name in the log for who writes
   */
  def find(
      session: SparkSession,
      table: String,
      identity: RowIdentity,
      application: String): Option[DeltaWriter] =
    DeltaRelation.find(session, table).flatMap { found =>
      found.withDelta(DeltaWrites.find(session, table, found, identity, application))
    }
}
