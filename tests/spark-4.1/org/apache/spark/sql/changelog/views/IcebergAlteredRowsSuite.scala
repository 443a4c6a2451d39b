// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

/** Views in the catalog of Iceberg tables, which is the session's default. */
class IcebergAlteredRowsSuite extends AlteredRowsTests with IcebergSession {
  override protected def provider = "iceberg"
  override protected def providers: Seq[String] = Seq("iceberg")
  override protected def ordersTable: String = "spark_catalog.default.orders"
  override protected def settings: Map[String, String] =
    Map("spark.sql.defaultCatalog" -> "ice", "spark.sql.catalog.ice.default-namespace" -> "db")

  override def beforeAll(): Unit = {
    super.beforeAll()
    run("CREATE NAMESPACE ice.db")
    ()
  }
}
