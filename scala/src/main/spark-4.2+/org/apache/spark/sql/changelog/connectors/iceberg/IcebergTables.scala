// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.iceberg

import org.apache.spark.sql.connector.catalog.Table

/** Finds no table, because Iceberg has no release for this version of Spark. */
private[iceberg] object IcebergTables {
  def find(table: Table): Option[IcebergTable] = None
  def reference(table: Table, version: String): Option[String] = None
}
