// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import org.apache.spark.sql.classic.{DataFrame, SparkSession}

/** DeltaWriter: writes batches of changes into a Delta table without `MERGE`. */
private[changelog] trait DeltaWriter {

  /**
   * Writes a batch in one commit, unless the table already has the batch. Writes nothing and returns false if the batch
   * affects too many rows.
   *
   * @param changes
   *   the table's columns, and a count in the last column. With a key, a positive count sets the key's row, and a
   *   negative count deletes the row. Without a key, the count is the number of equal rows to insert, or to delete if
   *   negative.
   */
  def write(changes: DataFrame, batch: Long): Boolean
}

private[changelog] object DeltaWriter {

  /**
   * Returns a writer for a table, or None if the table requires `MERGE`.
   *
   * @param application
   *   the writer's name in the log
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
