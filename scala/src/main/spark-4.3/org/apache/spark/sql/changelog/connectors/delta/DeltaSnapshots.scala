// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.execution.datasources.FileIndex

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** Delta has no release for this version of Spark. */
private[changelog] object DeltaRelease {

  /** @param user the object that needs Delta */
  def require(user: String): Unit =
    throw analysis("CHANGELOG_DELTA_NOT_SUPPORTED", "user" -> user, "version" -> SPARK_VERSION)
}

private[delta] object DeltaSnapshots {
  def isTimeTravel(location: FileIndex): Boolean = refuse(location)
  def of(location: FileIndex, table: Option[CatalogTable], since: Option[Long]): DeltaSnapshot =
    refuse(location)
  def pinned(location: FileIndex, wanted: Long): Option[FileIndex] = refuse(location)

  private def refuse(location: FileIndex): Nothing =
    throw analysis(
      "CHANGELOG_DELTA_NOT_SUPPORTED",
      "user" -> s"The table at ${location.rootPaths.mkString(", ")}",
      "version" -> SPARK_VERSION)
}
