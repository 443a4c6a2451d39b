// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.classic.{DataFrame, DataFrameReader}

/** The changes that a catalog gives of a table, of which this version knows nothing. */
object SparkChanges {
  def apply(reader: DataFrameReader, table: String): DataFrame =
    throw new UnsupportedOperationException(s"catalogs give no changes of $table in Spark 4.1")
}
