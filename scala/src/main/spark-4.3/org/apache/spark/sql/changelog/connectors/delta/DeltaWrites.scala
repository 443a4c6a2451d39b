// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import org.apache.spark.sql.classic.SparkSession

/** Finds no writer, because Delta has no release for Spark 4.3. */
private[delta] object DeltaWrites {
  def find(
      session: SparkSession,
      table: String,
      found: DeltaRelation,
      identity: RowIdentity,
      application: String): Option[DeltaWriter] = None

  def observed[T](properties: Option[DeltaProperties])(body: => T): T = body
}
