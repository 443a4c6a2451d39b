// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

/** Another process takes the lease of a view in an Iceberg table. */
class IcebergFenceSuite extends ViewFenceTests with IcebergSession {
  override protected def formats: Seq[String] = Seq("iceberg")
  override protected def name: String = "ice.db.v"
  // a round takes half a minute
  override protected def oneIn: Int = 12
  // Iceberg's catalog of folders renames no table.
  override protected def renamed: Option[String] = None
}
