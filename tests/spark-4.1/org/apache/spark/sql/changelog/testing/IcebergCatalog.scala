// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.jdk.CollectionConverters._

import org.apache.iceberg.catalog.Catalog
import org.apache.iceberg.spark.SparkCatalog

import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Iceberg's catalog of tables in folders below the option `home`. */
class IcebergCatalog extends SparkCatalog {
  override protected def buildIcebergCatalog(
      name: String,
      options: CaseInsensitiveStringMap): Catalog = {
    val own = Map("type" -> "hadoop", "warehouse" -> options.get("home"))
    super.buildIcebergCatalog(
      name,
      new CaseInsensitiveStringMap((options.asScala.toMap ++ own).asJava))
  }
}

object IcebergCatalog {

  /** The extension of Iceberg, with procedures and statements about partitions, branches and tags. */
  val Extension = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
}
