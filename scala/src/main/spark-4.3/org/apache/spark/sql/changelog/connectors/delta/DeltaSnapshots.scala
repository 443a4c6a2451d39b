// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.execution.datasources.FileIndex

/** Fails, because Delta has no release for Spark 4.3. */
private[delta] object DeltaSnapshots {
  def isTimeTravel(location: FileIndex): Boolean = notThere
  def of(location: FileIndex, table: Option[CatalogTable]): DeltaSnapshot = notThere

  private def notThere: Nothing =
    throw new NoClassDefFoundError("Delta has no release for Spark 4.3")
}
